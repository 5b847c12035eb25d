"""Capture filters: an expression in, BPF instructions out, with tcpdump's meaning because libpcap compiles them.

In: the expression and a link type. Out: instructions, which the native core runs. No packet is
touched here. The library is the one that the ``libpcap`` package ships, so that a filter means the same on every
machine; where it ships none for the platform, the system's.
"""

import ctypes
import importlib.util
import re
import struct
import sys
import tempfile
from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from conchart.errors import ConchartError, UsageError
from conchart.reading.display_filter import advice

Instruction = tuple[int, int, int, int]
"""``code, jt, jf, k`` of ``struct bpf_insn``."""

MAX_EXPRESSION = 16_384
"""libpcap calls itself for every branch: 4,000 terms overflow a stack of 2 MiB, which ends the process."""

_MOST_OPTIMIZED = 4_000
"""Instructions that are worth libpcap's optimizer (``tcpdump -O`` turns it off): 130 hosts. Its time grows with more
than their square, to fifteen seconds for 500 hosts, and saves a few microseconds per packet."""

_SNAP_LENGTH = 262_144
"""What tcpdump compiles filters for: no frame is longer, and every frame that is accepted is so as a whole."""

_ETHERNET = 1

_SYNTAX_ERROR = "syntax error"
"""libpcap's words for what is wrong on every link type: the grammar is one."""


def compiler(expression: str) -> Callable[[int], list[Instruction]]:
    """Bind a filter expression; the native core calls the result once per link type in the capture.

    Returns:
        A function from the link type, as in the file, to instructions.

    Raises:
        UsageError: The expression is no sentence of the language, whatever the link type. Words that only some link
            types have are for the core to ask about.
    """
    _, refusal = _compile(expression, _ETHERNET)
    if _SYNTAX_ERROR in refusal:
        raise _refused(refusal, expression, _ETHERNET)
    return lambda link_type: compile_filter(expression, link_type)


def compile_filter(expression: str, link_type: int) -> list[Instruction]:
    """Compile ``expression`` as ``tcpdump`` would for a capture with this link type.

    Raises:
        UsageError: libpcap refuses it; carries libpcap's words, and shows where it stopped understanding.
    """
    instructions, refusal = _compile(expression, link_type)
    if not refusal and len(instructions) <= _MOST_OPTIMIZED:
        # It also sees what can match no packet.
        instructions, refusal = _compile(expression, link_type, optimize=True)
    if refusal:
        raise _refused(refusal, expression, link_type)
    return instructions


def _refused(refusal: str, expression: str, link_type: int) -> UsageError:
    """Say why libpcap refuses an expression, where it stopped understanding, and what to write instead if known."""
    instead = ""
    if _SYNTAX_ERROR in refusal:
        instead = advice(expression, lambda other: not _compile(other, link_type)[1])
    return UsageError(f"filter: {refusal}\n{_point_at_fault(expression, link_type)}{instead}")


@lru_cache(maxsize=4)  # asked before the capture is opened, and again by the core
def _compile(expression: str, link_type: int, *, optimize: bool = False) -> tuple[list[Instruction], str]:
    """Compile; on failure the second value is libpcap's message."""
    pcap = library()
    handle = _open_empty_capture(pcap, link_type)
    try:
        program = pcap.bpf_program()
        failed = pcap.compile(handle, ctypes.byref(program), _source(expression), optimize, pcap.PCAP_NETMASK_UNKNOWN)
        if failed:
            return [], bytes(pcap.geterr(handle)).decode(errors="replace")
        instructions = [(i.code, i.jt, i.jf, i.k) for i in program.bf_insns[: program.bf_len]]
        pcap.freecode(ctypes.byref(program))
        return instructions, ""
    finally:
        pcap.close(handle)


def _source(expression: str) -> bytes:
    """Give the bytes that libpcap compiles.

    What is no Unicode becomes a question mark, which no filter has.

    Raises:
        UsageError: libpcap would not survive it, or would understand something else.
    """
    source = expression.encode(errors="replace")
    if len(source) > MAX_EXPRESSION:
        raise UsageError(f"filter: {len(source):,} bytes are too long, the limit is {MAX_EXPRESSION:,}")
    if b"\0" in source:
        raise UsageError("filter: it contains a NUL character, at which libpcap would stop reading")
    return source


def _open_empty_capture(pcap: Any, link_type: int) -> Any:  # noqa: ANN401
    """Open a capture without packets: libpcap compiles other code for files than for interfaces."""
    with tempfile.NamedTemporaryFile(suffix=".pcap") as capture:
        capture.write(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, _SNAP_LENGTH, link_type))
        capture.flush()
        complaint = ctypes.create_string_buffer(pcap.PCAP_ERRBUF_SIZE)
        handle = pcap.open_offline(capture.name.encode(), complaint)
    if not handle:
        raise UsageError(f"filter: {complaint.value.decode(errors='replace')}")
    return handle


def _point_at_fault(expression: str, link_type: int) -> str:
    """Show the expression with a caret under the first word after the longest start that compiles."""
    words = list(re.finditer(r"\S+", expression))
    for understood in range(len(words) - 1, -1, -1):
        start = expression[: words[understood].start()]
        if not _compile(start, link_type)[1]:
            # A fine start followed by "and" makes the word after it the suspect.
            joins = words[understood][0] in {"and", "or", "not", "&&", "||", "!"} and understood + 1 < len(words)
            column = words[understood + joins].start()
            return f"  {expression}\n  {' ' * column}^"
    return f"  {expression}"


@cache
def library() -> Any:  # noqa: ANN401  (the bindings have no types)
    """Import the bindings of libpcap on the library they ship.

    ``libpcap.config()`` chooses a library only after a first import has loaded the system's, which a bare machine
    lacks and which must not be loaded beside another one. So its configuration module is loaded, and set, before
    the package.
    """
    spec = importlib.util.find_spec("libpcap")
    if spec is None or spec.origin is None:
        raise ConchartError("filters need the libpcap package: pip install libpcap")
    configuration = _load_alone("libpcap.__config__", Path(spec.origin).with_name("__config__.py"))
    configuration.config["LIBPCAP"] = "tcpdump"
    try:
        import libpcap
    except OSError:
        configuration.config["LIBPCAP"] = "None"
        try:
            import libpcap
        except OSError as error:
            raise ConchartError(f"filters need libpcap, which this machine lacks ({error}): install it") from None
    return libpcap


def _load_alone(name: str, path: Path) -> Any:  # noqa: ANN401  (a module of the bindings)
    """Load one module of a package without its ``__init__``."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConchartError(f"cannot load {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
