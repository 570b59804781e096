# SPDX-License-Identifier: Apache-2.0
"""No obligation of the specification without a test, and no plan entry that points nowhere."""

import pytest

from kohakubench import testplan

pytestmark = pytest.mark.unit

PAGES = ("fabric", "cluster", "memory")


def _match(page: str) -> dict[str, list[testplan.Entry]]:
    return {
        o.text: [e for e in testplan.entries() if e.page == page and o.text.startswith(e.starts)]
        for o in testplan.obligations(page)
    }


@pytest.mark.parametrize("page", PAGES)
def test_every_obligation_has_a_test(page: str) -> None:
    """An obligation has tests, or belongs to a part that is not built yet."""
    missing = []
    for text, found in _match(page).items():
        waits = any(e.part in testplan.parts_not_built() for e in found if e.part)
        if not any(e.tests for e in found) and not waits:
            missing.append(text)
    assert not missing, f"{page}.md: obligations without a test:\n" + "\n".join(missing)


@pytest.mark.parametrize("page", PAGES)
def test_entries_match_one_obligation(page: str) -> None:
    """Every entry quotes exactly one obligation, and every obligation is quoted once."""
    texts = [o.text for o in testplan.obligations(page)]
    for entry in testplan.entries():
        if entry.page == page:
            hits = [t for t in texts if t.startswith(entry.starts)]
            assert len(hits) == 1, f"{entry.starts!r} matches {len(hits)} obligations of {page}.md"
    assert all(len(found) <= 1 for found in _match(page).values())


def test_tests_exist() -> None:
    """Every test named in the plan exists."""
    known = testplan.known_tests()
    unknown = sorted({t for e in testplan.entries() for t in e.tests} - known)
    assert not unknown, f"the plan names tests that do not exist: {unknown}"


def test_a_missing_obligation_is_noticed(tmp_path, monkeypatch) -> None:
    """Dropping an entry from the plan fails the first test."""
    entries = testplan.entries()
    monkeypatch.setattr(testplan, "entries", lambda: [e for e in entries if e.page != "fabric"])
    with pytest.raises(AssertionError, match="without a test"):
        test_every_obligation_has_a_test("fabric")
