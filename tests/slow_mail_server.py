"""Mail servers on 127.0.0.1 for tests: one that accepts connections and says nothing, and one that works."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class MailServer:
    """The connections of a server, and the emails that it accepted."""

    listener: socket.socket
    connections: list[socket.socket] = field(default_factory=list)
    received: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        port: int = self.listener.getsockname()[1]
        return port

    def accept(self, *, is_slow: bool) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            if not is_slow:
                threading.Thread(target=self.talk, args=(connection,), daemon=True).start()

    def talk(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rw", newline="") as stream:
            stream.write("220 ready\r\n")
            stream.flush()
            while line := stream.readline():
                if line.upper().startswith("DATA"):
                    stream.write("354 send\r\n")
                    stream.flush()
                    self.received.append("".join(iter(stream.readline, ".\r\n")))
                stream.write("221 bye\r\n" if line.upper().startswith("QUIT") else "250 ok\r\n")
                stream.flush()

    def close(self) -> None:
        self.listener.close()
        for connection in self.connections:
            # A close alone does not wake a thread that reads.
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


@contextmanager
def mail_server(*, is_slow: bool) -> Iterator[MailServer]:
    server = MailServer(socket.create_server(("127.0.0.1", 0), backlog=64))
    threading.Thread(target=server.accept, kwargs={"is_slow": is_slow}, daemon=True).start()
    try:
        yield server
    finally:
        server.close()
