"""Keeps bytes once per workspace, whoever brings them first."""

from django.db.models import QuerySet

from personas.models import Content, Workspace, digest_of


class Contents:
    """Bytes that are to be kept, by digest; after `keep` each of them has its row."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.by_digest: dict[str, Content] = {}

    def take(self, data: bytes) -> Content:
        digest = digest_of(data)
        if digest not in self.by_digest:
            self.by_digest[digest] = Content(
                workspace=self.workspace, digest=digest, size=len(data), data=data
            )
        return self.by_digest[digest]

    def keep(self) -> None:
        """Write what no file, push or source of the workspace has brought before."""
        rows = Content.objects.in_workspace(self.workspace)
        asked = rows.filter(digest__in=list(self.by_digest))
        have = known(asked)
        new = [row for digest, row in self.by_digest.items() if digest not in have]
        rows.bulk_create(new, ignore_conflicts=True)
        # Those made without a conflict check have no id yet on every database: look them all up.
        self.by_digest |= known(asked.all())


def known(rows: QuerySet[Content]) -> dict[str, Content]:
    return {row.digest: row for row in rows.defer("data")}
