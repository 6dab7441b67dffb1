"""Import contract for one app: layered feature packages, and interface modules that nothing below imports."""

from __future__ import annotations

from collections.abc import Iterator

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

# Views, API resources and forms; `diff_views` and `reports_api` count too.
INTERFACE = frozenset({"views", "api", "forms", "serializers", "urls", "page"})
INTERFACE_SUFFIXES = ("_views", "_api", "_forms", "_urls")
INTERFACE_PACKAGES = frozenset({"templatetags", "management"})
# Models, and the classes of their fields.
MODEL_MODULES = (".models", "tenancy.fields")
# At the top of an app: what wires it together. Feature packages do not import it.
WIRING = frozenset({"urls", "admin", "apps", "tasks", "receivers"})


class PackageLayersContract(Contract):
    """Check the feature packages of an app, or of a group of packages such as `prompts.publishing`.

    - Interface modules may import anything in the app; no other module imports them. With
      `covers_interfaces`, the layers apply to them as well.
    - Other modules import packages of lower layers only. Models are exempt as targets, because foreign
      keys cross packages, but models modules import no services.
    - Packages named on one line, separated by `|`, do not import each other.
    """

    type_name = "package_layers"

    app = fields.StringField()
    layers = fields.ListField(subfield=fields.StringField())
    # Packages of pages only: all their modules are interface modules.
    pages = fields.SetField(subfield=fields.StringField(), required=False)
    # Packages that interface modules are built with: none of their modules is one.
    toolkits = fields.SetField(subfield=fields.StringField(), required=False)
    ignore_imports = fields.SetField(subfield=fields.StringField(), required=False)
    covers_interfaces = fields.BooleanField(required=False, default=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        violations = sorted(self._violations(graph))
        return ContractCheck(kept=not violations, metadata={"violations": violations})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for violation in check.metadata["violations"]:
            output.print_error(violation)

    def _violations(self, graph: ImportGraph) -> Iterator[str]:
        allowed = set(self.ignore_imports or ())  # type: ignore[call-overload]
        ranks = {
            package.strip(): rank
            for rank, line in enumerate(reversed(self.layers))  # type: ignore[call-overload]
            for package in line.split("|")
        }
        used = set()
        for importer in sorted(graph.modules):
            package = self._package(importer)
            is_exempt = self._is_interface(importer) and not self.covers_interfaces
            if package is None or package in INTERFACE_PACKAGES or is_exempt:
                continue
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                if problem := self._problem(importer, imported, ranks):
                    line = f"{importer} -> {imported}"
                    used.add(line)
                    if line not in allowed:
                        yield f"{line}: {problem}"
        for line in allowed - used:
            yield f"{line}: listed in ignore_imports, but there is no such import"

    def _problem(self, importer: str, imported: str, ranks: dict[str, int]) -> str | None:
        if not imported.startswith(f"{self.app}."):
            return None
        importing, package = self._package(importer), self._package(imported)
        if package is None:
            is_wiring = imported.removeprefix(f"{self.app}.") in WIRING and not self._is_interface(importer)
            return "feature packages do not import the app's wiring" if is_wiring else None
        if self._is_interface(imported) and not self._is_interface(importer):
            return "only interface modules import interface modules"
        if importer.endswith(".models") and not imported.endswith(MODEL_MODULES):
            return (
                None if ranks.get(package, 0) <= ranks.get(importing or "", 0) else "models import services"
            )
        if importing == package or imported.endswith(MODEL_MODULES):
            return None
        return self._layer_problem(importing or "", package, ranks)

    @staticmethod
    def _layer_problem(importing: str, package: str, ranks: dict[str, int]) -> str | None:
        unranked = next((name for name in (importing, package) if name not in ranks), None)
        if unranked:
            return f"the package {unranked} has no layer"
        return None if ranks[package] < ranks[importing] else "imports run downwards only"

    def _package(self, module: str) -> str | None:
        """Return the feature package of a module; None at the top of the app or outside of it."""
        parts = module.removeprefix(f"{self.app}.").split(".")
        if not module.startswith(f"{self.app}.") or "migrations" in parts:
            return None
        return parts[0] if len(parts) > 1 else None

    def _is_interface(self, module: str) -> bool:
        packages = set(module.split(".")[1:-1])
        if packages & {*INTERFACE_PACKAGES, *(self.pages or ())}:  # type: ignore[misc]
            return True
        if packages & set(self.toolkits or ()):  # type: ignore[call-overload]
            return False
        name = module.rpartition(".")[2]
        return name in INTERFACE or name.endswith(INTERFACE_SUFFIXES)
