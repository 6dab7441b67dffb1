"""The lookup by texts that are joined in one parameter."""

import pytest

from personas.contents.services import store_contents
from personas.models import Content

pytestmark = pytest.mark.django_db


def test_joined_texts_find_the_same_rows_as_a_list(workspace, elsewhere):
    for one in (workspace, elsewhere):
        store_contents(one, {f"{number:064x}": str(number).encode() for number in range(1, 6)})
    rows = Content.objects.in_workspace(workspace)
    stored = sorted(rows.values_list("digest", flat=True))
    for wanted in (stored, stored[:1], stored[1:3], ["f" * 64], [stored[0], "f" * 64]):
        found = rows.filter(digest__in_joined=",".join(wanted)).values_list("digest", flat=True)
        assert sorted(found) == sorted(set(wanted) & set(stored))
