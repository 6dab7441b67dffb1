"""The error raised for inputs that cannot be assembled; it names the path of the invalid value."""


class AssemblyError(ValueError):
    """The inputs are invalid; nothing was assembled."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path, self.message = path, message
