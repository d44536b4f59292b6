"""A wire to a PostgreSQL server that can be cut."""

import shutil
import socket
import tempfile
import threading
from pathlib import Path


def _end(end: socket.socket) -> None:
    """Tell the other side at once; closing alone waits for a thread that still reads."""
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:  # somebody was quicker
        return


class Wire:
    """Forwards a socket to the server's; `cut` breaks every connection and lets none through until `mend`."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="polyarm-wire-"))
        self._to = f"{folder}/.s.PGSQL.{port}"
        self._open: set[socket.socket] = set()
        self._whole = True
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(f"{self.folder}/.s.PGSQL.{port}")
        self._listening.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            if not self._whole:
                near.close()
                continue
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._to)
            self._open |= {near, far}
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._forward, args=pair, daemon=True).start()

    def _forward(self, source: socket.socket, goal: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                goal.sendall(data)
        except OSError:
            pass
        for end in (source, goal):
            _end(end)
        source.close()  # nobody else reads from it
        self._open.discard(source)

    def cut(self) -> None:
        self._whole = False
        for end in list(self._open):
            _end(end)

    def mend(self) -> None:
        self._whole = True

    def close(self) -> None:
        self.cut()
        self._listening.close()
        shutil.rmtree(self.folder, ignore_errors=True)
