"""Runs a parcel on a host that one can log in to: one connection sends it, starts it and follows its log.

The run does not need the connection: the same command follows it, or continues it where it was cut off.
"""

import shlex
import subprocess
import tempfile
from collections.abc import Iterator

from derived.book.away.parcel import Parcel
from derived.book.house import UserError
from derived.lab.sources import PACKAGE_ROOT

PLAIN = ("-o", "BatchMode=yes", "-o", "ServerAliveInterval=30")  # no password can be typed, a dead line is noticed
BROKEN = 255  # what ssh returns where the connection fails


def lines(host: str, parcel: Parcel) -> Iterator[str]:
    """Yield the log of a run as it grows; UserError where the connection fails."""
    script = f"name={parcel.name}\n" + (PACKAGE_ROOT / "book/away/ssh.sh").read_text("utf-8")
    command = ["ssh", *PLAIN, "--", host, f"sh -c {shlex.quote(script)}"]
    with tempfile.TemporaryFile() as sent, tempfile.TemporaryFile("w+") as complaints:
        sent.write(parcel.content)
        sent.seek(0)
        try:
            running = subprocess.Popen(command, stdin=sent, stdout=subprocess.PIPE, stderr=complaints, text=True)
        except FileNotFoundError:
            raise UserError("there is no ssh on this machine; install OpenSSH's client") from None
        with running:
            try:
                yield from running.stdout
            except BaseException:  # nobody follows any more; the run goes on
                running.terminate()
                raise
        code = running.returncode
        complaints.seek(0)
        last = (complaints.read().strip().splitlines() or ["it says nothing"])[-1]
    if code == BROKEN:
        raise UserError(
            f"the connection to {host} failed ({last}); if a run is on there it goes on: same command again"
        )
    if code:
        raise UserError(f"{host} cannot run it ({last})")
