"""A flame graph adds up: what perf sampled is shown once, with names that a person can read."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from tests.benchmarks.flame import Bar, drawn, folded, named, stacks

PERF = """
    55d0 core::hash::mix::<u8>
    55d1 <conchart_native::tls::Tls as conchart_native::tls::Reader>::data::h0123456789abcdef
    55d2 read::counted
    55d3 main

    55d4 conchart_native::flow::Table<T>::locate
    55d2 read::counted

    55d9 ld_start

    55d1 <conchart_native::tls::Tls as conchart_native::tls::Reader>::data::h0123456789abcdef
    55d2 read::counted
""".splitlines()


def test_stacks_are_put_together_from_the_function_that_is_counted_on() -> None:
    lowest = folded(stacks(PERF))
    assert lowest.samples == 3
    assert {name: bar.samples for name, bar in lowest.above.items()} == {"tls::Tls::data": 2, "flow::Table::locate": 1}
    assert list(lowest.above["tls::Tls::data"].above) == ["core::hash::mix"]


def test_names_are_short() -> None:
    assert named("alloc::vec::Vec<alloc::boxed::Box<u8>,A>::push+0x12") == "alloc::vec::Vec::push"
    assert named("[unknown]") == "[unknown]"


def test_a_bar_is_as_wide_as_its_share_and_names_are_escaped() -> None:
    lowest = Bar("everything", 4, {"a<b>": Bar("a<b>", 3), "c": Bar("c", 1)})
    text = drawn(lowest, "Title & more")
    picture = ElementTree.fromstring(text)
    bars = {each.get("data-name"): each for each in picture.iter() if each.get("data-x")}
    assert {name: (each.get("data-x"), each.get("data-w")) for name, each in bars.items()} == {
        "everything": ("0.000000", "1.000000"),
        "a<b>": ("0.000000", "0.750000"),
        "c": ("0.750000", "0.250000"),
    }
    # Nothing is fetched: the one address names the language.
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
