# SPDX-License-Identifier: Apache-2.0
"""No obligation of the specification without a test, and no plan entry that points nowhere."""

import re

import pytest

from kohakubench import testplan
from kohakubench.bench import discover

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("page", testplan.PLANNED)
def test_every_obligation_has_a_test(page: str) -> None:
    """An obligation has tests, or belongs to a part that is not built yet."""
    missing = [o.text for o, e in testplan.of_page(page, testplan.entries()) if e is None or e.state == "missing"]
    assert not missing, f"{page}.md: obligations without a test:\n" + "\n".join(missing)


@pytest.mark.parametrize("page", testplan.PLANNED)
def test_entries_match_one_obligation(page: str) -> None:
    """Every entry quotes exactly one obligation, and every obligation is quoted once."""
    texts = [o.text for o in testplan.obligations(page)]
    mine = [e for e in testplan.entries() if e.page == page]
    for entry in mine:
        hits = [t for t in texts if t.startswith(entry.starts)]
        assert len(hits) == 1, f"{entry.starts!r} matches {len(hits)} obligations of {page}.md"
    for text in texts:
        quoted = [e.starts for e in mine if text.startswith(e.starts)]
        assert len(quoted) <= 1, f"{text[:60]!r} of {page}.md is quoted by {quoted}"


def test_pages_have_obligations() -> None:
    """The pages are read at all, and no entry belongs to a page without obligations."""
    for page in testplan.PLANNED:
        found = testplan.obligations(page)
        assert len(found) > 20
        assert len({o.text for o in found}) == len(found)
    assert all(testplan.obligations(e.page) for e in testplan.entries())


def test_tests_exist() -> None:
    """Every test named in the plan exists."""
    known = testplan.known_tests()
    unknown = sorted({t for e in testplan.entries() for t in e.tests} - known)
    assert not unknown, f"the plan names tests that do not exist: {unknown}"


def test_parts_are_declared() -> None:
    """A part an entry waits for stands in the list of parts not built, and every such part has an entry."""
    waiting = {e.part for e in testplan.entries() if e.part}
    assert waiting == testplan.parts_not_built()


def test_open_clauses_have_their_reason() -> None:
    """A clause without a check is open because of a part that is not built, not by oversight."""
    assert not [e.starts for e in testplan.entries() if e.open and not e.part]


def test_a_missing_obligation_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropping an entry from the plan fails the first test."""
    entries = testplan.entries()
    monkeypatch.setattr(testplan, "entries", lambda: [e for e in entries if e.page != "fabric"])
    with pytest.raises(AssertionError, match="without a test"):
        test_every_obligation_has_a_test("fabric")


def test_imported_tests_are_found_and_others_are_not() -> None:
    """A bench has the tests it imports by name or by star, and no other of the imported file."""
    known = testplan.known_tests()
    assert {"mesh_traffic_2x2::all_to_all", "mg_cluster::fill_order", "mg_cluster_small::fill_sizes"} <= known
    assert {"route-14x14", "route-14x14::all_destinations", "test_testplan.py::test_tests_exist"} <= known
    assert not {"mg_cluster_small::fill_order", "route-9x9", "mesh_tests", "router::drain"} & known


# An inbound link: valid, data and the busy that answers them.
_LINK = re.compile(r"\b\w*(?:noc|[neswl])_(?:in|out)_busy\b")


def test_every_bench_checks_its_links() -> None:
    """A bench whose sources have mesh links puts link checkers on them; machine benches on every link."""
    seen = 0
    for bench in discover():
        if bench.machine:
            assert bench.checked, f"{bench.name} runs its machine without checkers"
            continue
        files = bench.files()
        texts = {f.name: f.read_text(encoding="utf-8") for f in files}
        if not any(_LINK.search(t) for t in texts.values()):
            continue
        seen += 1
        placed = sum(len(re.findall(r"\blink_checker #", t)) for n, t in texts.items() if n != "link_checker_sva.sv")
        assert "link_checker_sva.sv" in texts, f"{bench.name} has links and no checker among its sources"
        assert placed >= 2, f"{bench.name} has links in both directions and {placed} checkers"
    assert seen > 10
