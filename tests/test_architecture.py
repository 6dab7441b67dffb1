"""Architecture: pure modules need no framework, few modules use unscoped queries, templates are safe."""

from tests.isolation.architecture import (
    find_impure_modules,
    find_mark_safe,
    find_unsafe_templates,
    find_unscoped_queries,
    find_unused_permissions,
    list_pure_modules,
)


def test_pure_modules_import_without_frameworks():
    assert not find_impure_modules(list_pure_modules())


def test_the_list_of_pure_modules_is_not_empty():
    assert {"prompts.assembly", "skills.skill_format.parser", "core.text.front_matter"} <= set(
        list_pure_modules()
    )


def test_only_listed_modules_use_unscoped_queries():
    assert not find_unscoped_queries()
    assert not find_unused_permissions()


def test_templates_contain_no_unsafe_markup():
    assert not find_unsafe_templates()
    assert not find_mark_safe()
