"""Why inputs cannot become a prompt, with the path to what is wrong."""


class AssemblyError(ValueError):
    """Inputs that no prompt can be made of; nothing was assembled."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path, self.message = path, message
