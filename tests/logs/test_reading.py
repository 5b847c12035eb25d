"""Files of access logs, and what somebody says of them."""

from pathlib import Path

import pytest

from conchart.errors import CaptureError, UsageError
from conchart.logs.reading import access_logs, read_logs
from tests.by_hand import tables_of

LINE = '10.0.0.1 - - [15/Nov/2023:10:00:00 +0000] "GET /a HTTP/1.1" 200 12 "-" "curl/8.0"\n'


def test_a_log_is_named_with_its_product() -> None:
    (log,) = access_logs(["nginx=/var/log/access=1.log"])
    assert (log.product, log.path) == ("nginx", "/var/log/access=1.log")
    assert len(log.formats) >= 1


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("access.log", "name the product (--access-log nginx=access.log)"),
        ("iis=access.log", "the product is one of"),
        ("nginx=", "--access-log nginx=: name the file (--access-log nginx=access.log)"),
        ("/a.b/c=access.log", "name the product (--access-log nginx=/a.b/c=access.log)"),
    ],
)
def test_a_log_without_a_product_is_refused(named: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        access_logs([named])
    assert words in str(caught.value)


def formats(named: list[str], texts: list[str]) -> list[str]:
    return [log.formats[0].text for log in access_logs(named, texts)]


ONE, OTHER = "$msec $status", "$status $msec"


def test_a_format_is_for_all_logs_or_each_has_its_own() -> None:
    two = ["nginx=a.log", "nginx=b.log"]
    assert formats(two, [ONE]) == [ONE, ONE]
    assert formats(two, [ONE, OTHER]) == [ONE, OTHER]
    assert formats([], []) == []


def test_a_format_may_name_its_product() -> None:
    assert formats(["nginx=a.log", "nginx=b.log"], [f"nginx={OTHER}"]) == [OTHER, OTHER]
    assert formats(["nginx=a.log"], [ONE, f"nginx={OTHER}"]) == [OTHER], "the more exact one counts"


def test_formats_without_a_log_and_too_many_are_refused() -> None:
    for named, texts, words in (
        ([], [ONE], "it needs a log"),
        ([], [f"nginx={ONE}"], "it needs a log"),
        (["nginx=a.log"], [ONE, OTHER], "2 for 1 logs"),
        (["nginx=a.log"] * 3, [ONE, OTHER], "2 for 3 logs"),
    ):
        with pytest.raises(UsageError, match=words):
            access_logs(named, texts)


def test_lines_become_rows_and_what_cannot_be_read_is_counted(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(LINE + "no line at all\n" + LINE.replace("/a", "/b"))
    tables = tables_of()
    assert not tables.have_logs
    read_logs(tables, access_logs([f"nginx={log}"]))
    assert tables.fetch("SELECT line, method, target, status, bytes, client_ip FROM log_lines ORDER BY line") == [
        (1, "GET", "/a", 200, 12, "10.0.0.1"),
        (3, "GET", "/b", 200, 12, "10.0.0.1"),
    ]
    assert tables.fetch("SELECT log, path, product, lines, malformed, first_malformed, zoned, matched FROM logs") == [
        (0, str(log), "nginx", 3, 1, 2, True, None)
    ]
    assert tables.have_logs


def test_several_logs_are_numbered_in_their_order(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(LINE.replace("/a", f"/{name}"))
    tables = tables_of()
    read_logs(tables, access_logs([f"nginx={tmp_path}/b", f"nginx={tmp_path}/a"]))
    assert tables.fetch("SELECT log, target FROM log_lines ORDER BY log") == [(0, "/b"), (1, "/a")]


def test_a_file_that_is_not_there_or_has_another_format_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"cannot read the access log .*none\.log"):
        read_logs(tables_of(), access_logs([f"nginx={tmp_path}/none.log"]))
    other = tmp_path / "other.log"
    other.write_text("a\nb\n")
    with pytest.raises(CaptureError, match=r"other\.log:1: no line of 2 has the format of nginx"):
        read_logs(tables_of(), access_logs([f"nginx={other}"]))
