"""Drop root's rights once a capture has begun: another user reads packets and writes files.

In: the user that root wants to be, or none. Out: the user that all of the process has become.
"""

import os
import pwd
from pathlib import Path

from conchart import errors

_NOBODY = "nobody"
_PACKAGE = Path(errors.__file__).parent


def unprivileged(user: str | None = None) -> pwd.struct_passwd | None:
    """Say whom to become.

    Args:
        user: A name or number.  [default: who called sudo, else nobody]

    Returns:
        None where we are not root, or shall stay root.

    Raises:
        UsageError: There is no such user.
    """
    if os.geteuid() != 0:
        return None
    caller = os.environ.get("SUDO_UID", "0")
    entry = _entry(user or (caller if caller != "0" else _NOBODY))
    return entry if entry.pw_uid else None


def become(entry: pwd.struct_passwd) -> None:
    """Be that user from here on, with that one's groups: for good, and in every thread.

    Raises:
        UsageError: That user cannot read conchart's own files.
    """
    os.initgroups(entry.pw_name, entry.pw_gid)
    os.setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid)
    os.setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid)  # in every thread: the C library sees to it
    if not os.access(_PACKAGE / "outputs" / "page" / "templates", os.R_OK | os.X_OK):
        raise errors.UsageError(
            f"conchart switches to the user {entry.pw_name}, who cannot read conchart's own files in {_PACKAGE}: "
            "install conchart in a folder that every user can read, or keep root (-Z root)"
        )


def _entry(user: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwuid(int(user)) if user.isascii() and user.isdigit() else pwd.getpwnam(user)
    except (KeyError, OverflowError, ValueError):
        raise errors.UsageError(f"there is no user {user!r}: name another one (-Z USER)") from None
