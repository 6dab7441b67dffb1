"""The table of the peers bench, and whether its goals are met."""

from benches.fetch import JUDGED, Results, late, ratio, said, speed

# What is compared: the words of the line, our work, and the peer's.
PAIRS = (
    ("fetch by label", "fetch", "MLflow fetch"),
    ("as its client does", "fetch", "MLflow load_prompt"),
    ("create a version", "create", "MLflow create"),
    ("move a label", "move", "MLflow move"),
)
COLUMNS = ("p50 ms", "p99 ms", "refused", "MLflow/s", "p50 ms", "p99 ms", "refused", "times", "p99 ÷")
FASTER, SOONER, MORE_VERSIONS = 10.0, 10.0, 3.0


def head(kind: str) -> None:
    print(f"\n{kind:20}{'connections':>12}{'ours/s':>9}" + "".join(f"{name:>9}" for name in COLUMNS))


def table(connections: int, results: Results) -> None:
    for words, ours, theirs in PAIRS:
        print(
            f"{words:20}{connections:>12}{figures(results, ours)}{figures(results, theirs)}"
            f"{ratio(results, ours, theirs):>9.1f}{sooner(results, ours, theirs):>9.1f}"
        )
    print(f"{'bare view':20}{connections:>12}{figures(results, 'bare view')}")
    shares = [result["share"] for kind in results.values() for result in kind]
    print(f"{'':20} (the load generator used at most {max(shares):.0%} of a core)", flush=True)


def shared(results: Results, prompts: int) -> None:
    """Not judged: what one edit makes of many prompts, in versions a second."""
    ours, theirs = (speed(results, name) * prompts for name in ("shared", "MLflow shared"))
    print(
        f"a sentence of {prompts} prompts, 1 connection: {ours:,.0f} versions/s, MLflow {theirs:,.0f}, "
        f"{ratio(results, 'shared', 'MLflow shared'):.1f} times"
    )


def figures(results: Results, name: str) -> str:
    p50, p99 = (late(results, name, percentile) for percentile in ("p50", "p99"))
    return f"{speed(results, name):>9,.0f}{p50:>9.2f}{p99:>9.2f}{refused(results, name):>9.1%}"


def sooner(results: Results, ours: str, theirs: str) -> float:
    """How many times the peer's 99th percentile is ours."""
    return late(results, theirs, "p99") / late(results, ours, "p99")


def refused(results: Results, name: str) -> float:
    """The share of operations that were not carried out; they count for nothing in the speed."""
    asked = sum(result["requests"] + result["refused"] for result in results[name])
    return float(sum(result["refused"] for result in results[name]) / asked)


def judged(kind: str, results: Results) -> bool:
    at = f"{kind}, {JUDGED} connections: "
    goals = [
        said(f"{at}fetch over MLflow's", ratio(results, "fetch", "MLflow fetch"), FASTER, "×"),
        said(f"{at}MLflow's p99 over ours", sooner(results, "fetch", "MLflow fetch"), SOONER, "×"),
        said(f"{at}versions over MLflow's", ratio(results, "create", "MLflow create"), MORE_VERSIONS, "×"),
    ]
    return all(goals)
