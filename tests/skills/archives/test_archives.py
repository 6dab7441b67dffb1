"""Reading, writing and mutating archives and lists of pushed files."""

import io
import random
import stat
import tracemalloc
import zipfile

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skills.archives import FileBundle, bundle_files, read_zip, write_zip
from skills.discovery.harnesses import DiscoveryCaps
from tests.example_counts import examples
from tests.skills.archives.archive_corpus import ARCHIVES, CLASHES, HIDDEN, PATHS, archive_with_entries
from tests.skills.archives.zip_builder import Part, archive

LISTS: list[tuple[str, list[str], dict[str, str], list[str]]] = [
    *[(name, [path], {path: rule}, []) for name, path, rule in PATHS],
    *[(name, [path], {displayed: rule}, []) for name, path, displayed, rule in HIDDEN],
    *CLASHES,
    ("half a letter", ["\ud800.md"], {"\\ud800.md": "name"}, []),
]


def rules(bundle: FileBundle) -> dict[str, str]:
    return {refusal.path: refusal.rule for refusal in bundle.refusals}


def findings(case) -> list[str]:
    """List the differences between the result and the expectation of the case."""
    bundle = read_zip(case.data(), caps=case.caps)
    paths = [path for path, _ in bundle.files]
    problems = [] if rules(bundle) == case.refused else [f"refused {rules(bundle)}, expected {case.refused}"]
    problems += [] if paths == case.expected else [f"took {paths}, expected {case.expected}"]
    return problems + [f"no reason: {refusal}" for refusal in bundle.refusals if not is_readable(refusal)]


def is_readable(refusal) -> bool:
    text = refusal.path + refusal.reason
    return (
        len(refusal.reason) > 14 and refusal.reason.endswith(".") and text.isprintable() and len(text) < 1_500
    )


def test_the_corpus_is_large():
    assert len(ARCHIVES) >= 100
    assert len({case.name for case in ARCHIVES}) == len(ARCHIVES)


# Built from 65,536 parts.
LARGE = {"more entries than 16 bits"}

# --- archives ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.promise("R8", counts="files")
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[pytest.mark.hard] if case.name in LARGE else [])
        for case in ARCHIVES
    ],
)
def test_a_malformed_archive_gives_its_reason_and_its_valid_files(case):
    assert findings(case) == []


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_archive_of_the_standard_library_is_read_whole(method):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", method) as zip_file:
        zip_file.mkdir("docs")
        zip_file.writestr("AGENTS.md", "Be kind.\n" * 99)
        zip_file.writestr("docs/ä.md", b"")
        with zip_file.open("forced.md", "w", force_zip64=True) as file:
            file.write(b"64 bits")
    bundle = read_zip(target.getvalue())
    assert bundle.refusals == ()
    assert dict(bundle.files) == {"AGENTS.md": b"Be kind.\n" * 99, "docs/ä.md": b"", "forced.md": b"64 bits"}


def test_an_archive_written_as_a_stream_is_read_whole():
    class Pipe(io.RawIOBase):
        """A stream without seek, so that the sizes are written in data descriptors."""

        def __init__(self):
            self.all = b""

        def writable(self):
            return True

        def write(self, some):
            self.all += bytes(some)
            return len(some)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as zip_file:
        zip_file.writestr("AGENTS.md", b"words")
        zip_file.writestr("b/c.md", b"more words")
    assert read_zip(pipe.all) == FileBundle((("AGENTS.md", b"words"), ("b/c.md", b"more words")), ())


@pytest.mark.hard
def test_an_archive_of_more_files_than_16_bits_can_count_is_read_whole():
    bundle = read_zip(archive_with_entries(0x10000))
    assert len(bundle.files) == 0x10000
    assert bundle.refusals == ()


@pytest.mark.slow
def test_a_bomb_takes_no_more_memory_than_is_allowed():
    data = archive(*[Part(f"{at}.md", bytes(10**6), packed=BOMB) for at in range(200)])
    tracemalloc.start()
    bundle = read_zip(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert set(rules(bundle).values()) == {"size"}
    assert peak < 2**20


BOMB = Part("", bytes(10**6)).body


def test_a_liar_is_not_unpacked_to_its_end():
    """Twenty megabytes are packed with a declared size of ten bytes."""
    liar = Part("liar.md", bytes(10), packed=Part("", bytes(2 * 10**7)).body)
    data = archive(liar)
    tracemalloc.start()
    bundle = read_zip(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rules(bundle) == {"liar.md": "mismatch"}
    assert peak < 2**20


# --- lists ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("paths", "refused", "accepted"), [pytest.param(*row[1:], id=row[0]) for row in LISTS]
)
def test_a_malformed_list_gives_the_same_refusals_as_an_archive(paths, refused, accepted):
    bundle = bundle_files([("AGENTS.md", b"good neighbour"), *[(path, b"words") for path in paths]])
    assert rules(bundle) == refused
    assert [path for path, _ in bundle.files] == sorted(["AGENTS.md", *accepted])
    assert all(is_readable(refusal) for refusal in bundle.refusals)


def test_a_list_knows_the_same_caps():
    pairs = [("a", b"x" * 60), ("b", b"x" * 60)]
    assert rules(bundle_files(pairs, caps=DiscoveryCaps(file_bytes=59))) == {"a": "size", "b": "size"}
    assert rules(bundle_files(pairs, caps=DiscoveryCaps(total_bytes=119))) == {".": "total"}
    assert rules(bundle_files(pairs, caps=DiscoveryCaps(entries=1))) == {".": "entries"}
    assert rules(bundle_files([], caps=DiscoveryCaps(entries=0))) == {}
    assert rules(bundle_files(pairs, caps=DiscoveryCaps(file_bytes=60, total_bytes=120, entries=2))) == {}


def test_a_list_without_end_is_not_read_to_its_end():
    def endless():
        for at in range(10**9):
            requested.append(at)
            yield f"{at}.md", b"x" * 1000

    requested: list[int] = []
    assert rules(bundle_files(endless(), caps=DiscoveryCaps(total_bytes=10_000))) == {".": "total"}
    assert rules(bundle_files(endless(), caps=DiscoveryCaps(entries=10))) == {".": "entries"}
    assert len(requested) == 22


# --- writing -------------------------------------------------------------------------------------------

SKILL = [("scripts/run.py", b"print()\n"), ("SKILL.md", b"---\nname: a\n---\n"), ("é.md", b"")]


def test_the_same_files_give_the_same_archive():
    assert write_zip(SKILL) == write_zip(reversed(SKILL))
    with zipfile.ZipFile(io.BytesIO(write_zip(SKILL))) as zip_file:
        assert zip_file.namelist() == ["SKILL.md", "scripts/run.py", "é.md"]
        assert zip_file.testzip() is None
        for entry in zip_file.infolist():
            assert entry.date_time == (1980, 1, 1, 0, 0, 0)
            assert entry.external_attr >> 16 == stat.S_IFREG | 0o644


def test_the_archive_is_the_same_for_ever():
    """The digest may be stored elsewhere, so the bytes must not change between releases."""
    assert write_zip([("a", b"b")]).hex() == (
        "504b030414000000000000002100f9efbe710100000001000000010000006162"
        "504b01021403140000000000000021"
        "00f9efbe7101000000010000000100000000000000000000"
        "00a4810000000061"
        "504b050600000000010001002f000000200000000000"
    )


def test_what_is_written_is_read_back():
    assert read_zip(write_zip(SKILL)) == FileBundle(tuple(sorted(SKILL)), ())
    assert read_zip(write_zip([])) == FileBundle((), ())


@pytest.mark.parametrize(
    "files", [[("../x", b"")], [("x", b""), ("X", b"")], [("x", b"a" * 256 * 1024 + b"b")], [("", b"")]]
)
def test_what_could_not_be_read_back_is_not_written(files):
    with pytest.raises(ValueError, match=r": .+\."):
        write_zip(files)


NAMES = st.text(st.characters(codec="utf-8"), max_size=12)


@given(
    st.lists(st.tuples(st.one_of(NAMES, st.sampled_from(["a/b", "A/B", "a", "../a"])), st.binary(max_size=9)))
)
@settings(max_examples=examples(40, hard=300), deadline=None)
def test_a_list_and_its_archive_are_judged_alike(pairs):
    by_list = bundle_files(pairs)
    # An archive cannot contain a file whose name ends in a slash.
    if not any(path.endswith("/") for path, _ in pairs):
        assert read_zip(archive(*[Part(path, content) for path, content in pairs])) == by_list
    assert read_zip(write_zip(by_list.files)).files == by_list.files


# --- mutations -----------------------------------------------------------------------------------------

PARTS = [
    Part("AGENTS.md", b"Be kind.\n" * 9),
    Part("docs/", b"", 0),
    Part("docs/a.md", b"stored words", 0),
    Part(".agents/skills/a-b/SKILL.md", b"---\nname: a-b\n---\n" * 9, flags=0x800),
    Part("b.bin", bytes(range(256)), flags=8, descriptor=bytes(16)),
]
ORIGINAL = archive(*PARTS, comment=b"a comment")
FILES = {str(part.name): part.content for part in PARTS if not str(part.name).endswith("/")}
SPOTS = st.integers(0, len(ORIGINAL) - 1)
CUTS = st.tuples(SPOTS, st.integers(0, 60), st.binary(max_size=60))
SIGNS = st.sampled_from(
    [b"PK\1\2", b"PK\3\4", b"PK\5\6", b"PK\6\6", b"PK\6\7", b"\xff\xff\xff\xff", b"../", b"\0"]
)


def is_inside(path: str) -> bool:
    names = path.split("/")
    return not {"", ".", ".."} & set(names) and "\\" not in path and path.isprintable()


def check_mutant(data: bytes) -> FileBundle:
    bundle = read_zip(data)
    assert all(is_inside(path) for path, _ in bundle.files)
    assert all(is_readable(refusal) for refusal in bundle.refusals)
    assert bundle.files == () or "." not in rules(bundle)
    return bundle


MUTANTS = examples(100, hard=1_000)


def test_the_original_is_valid():
    assert dict(check_mutant(ORIGINAL).files) == FILES


@pytest.mark.slow
@pytest.mark.promise("R8")
def test_changed_bytes_never_break_out(record_property):
    tried = []

    @given(st.lists(st.tuples(SPOTS, st.integers(0, 255)), min_size=1, max_size=8))
    @settings(max_examples=MUTANTS, deadline=None)
    def check(changes):
        data = bytearray(ORIGINAL)
        for at, value in changes:
            data[at] = value
        check_mutant(bytes(data))
        tried.append(len(changes))

    check()
    record_property("mutations", len(tried))


@pytest.mark.promise("R8")
def test_cut_and_added_bytes_never_break_out(record_property):
    tried = []

    @given(
        st.lists(
            st.one_of(CUTS, st.tuples(SPOTS, st.just(0), SIGNS), st.tuples(SPOTS, st.just(4), SIGNS)),
            min_size=1,
            max_size=4,
        )
    )
    @settings(max_examples=MUTANTS, deadline=None)
    @example([(0, 0, ORIGINAL)])
    @example([(len(ORIGINAL) - 1, 0, ORIGINAL)])
    def check(cuts):
        data = ORIGINAL
        for at, length, more in cuts:
            data = data[:at] + more + data[at + length :]
        check_mutant(data)
        tried.append(len(cuts))

    check()
    record_property("mutations", len(tried))


@pytest.mark.slow
def test_every_single_changed_byte_is_noticed_or_harmless():
    """Change each byte: accepted files are unchanged, except for the flag of a name or a comment."""
    for at in range(len(ORIGINAL)):
        # Depends on the seed of the run, so that each run changes other bits.
        bits = random.choice((0x01, 0x80, 0xFF))  # noqa: S311
        data = bytearray(ORIGINAL)
        data[at] ^= bits
        taken = dict(check_mutant(bytes(data)).files)
        assert taken.items() <= FILES.items(), f"byte {at} ^ {bits:02x}"


@pytest.mark.parametrize("name", FILES)
def test_damage_to_one_file_leaves_its_neighbours(name):
    part = next(part for part in PARTS if part.name == name)
    at = ORIGINAL.index(part.body)
    for spot in range(at, at + len(part.body)):
        data = bytearray(ORIGINAL)
        data[spot] ^= 0x55
        bundle = check_mutant(bytes(data))
        assert dict(bundle.files) == {path: FILES[path] for path in FILES if path != name}
        assert list(rules(bundle)) == [name]
