"""Architecture: pure modules need no framework, few modules use unscoped queries, templates are safe."""

from tests.isolation.architecture import (
    careless_code,
    careless_templates,
    core_modules,
    idle_permissions,
    impure_modules,
    long_files,
    looks_beyond,
    silent_modules,
)


def test_the_core_imports_with_the_frameworks_walled_off():
    assert not impure_modules(core_modules())


def test_the_core_is_more_than_nothing():
    assert {"prompts.assembly", "skills.skill_format.parser", "core.text.front_matter"} <= set(core_modules())


def test_only_a_few_known_places_look_beyond_one_workspace():
    assert not looks_beyond()
    assert not idle_permissions()


def test_templates_neither_trust_text_nor_hold_script_or_style():
    assert not careless_templates()
    assert not careless_code()


def test_every_module_opens_with_a_sentence():
    assert not silent_modules()


def test_no_file_is_too_long_to_be_read():
    assert not long_files()
