"""What a run says of itself: one line, a line for each part, reasons found when they are asked for."""

from nectar.report.run import Part, RunReport


def report(*parts):
    made = RunReport()
    for part in parts:
        made.add(part)
    return made


def test_nothing_has_run():
    empty = RunReport()
    assert str(empty) == "nectar: nothing has run yet"
    assert empty.why == ""
    assert empty.details() == str(empty)
    assert (empty.seconds_saved, empty.bytes_saved, empty.reused, empty.computed) == (0, 0, [], [])


def test_the_summary_counts_what_was_reused_and_what_it_saved():
    made = report(
        Part("a", "reused", seconds=1.0, saved=253.0, size=10),
        Part("b", "computed", seconds=5.0),
        Part("c", "reused", seconds=2.0, saved=1.0, size=5),
    )
    assert str(made).startswith("nectar: 2 of 3 queries from cache, ")
    assert "4 min 12 s saved" in str(made)
    assert made.seconds_saved == 252.0, "a part that took longer to fetch than to compute saves nothing"
    assert made.bytes_saved == 15
    assert [part.name for part in made.computed] == ["b"]


def test_the_summary_of_a_first_run_says_what_was_kept():
    made = report(Part("a", keeping="being kept", size=1000), Part("b", keeping="not kept: too large"))
    assert str(made) == "nectar: 0 of 2 queries from cache, 1 kept for next time (1 kB)"
    assert str(report(Part("a", keeping="not kept"))) == "nectar: 0 of 1 query from cache, nothing kept"


def test_reasons_are_found_once_and_only_when_asked_for():
    asked = []

    def explain():
        asked.append(1)
        return "its code changed"

    part = Part("a", explain=explain)
    made = report(part)
    assert asked == []
    assert part.reason == part.reason == "its code changed"
    assert asked == [1]
    assert part.explain is None, "it may hold the arguments of a call"
    assert made.why == "a: its code changed"


def test_details_have_a_line_for_each_part_up_to_a_limit():
    made = report(*(Part(f"p{n}", "reused", saved=1.0) for n in range(30)))
    lines = made.details().splitlines()
    assert lines[0].startswith("p0: reused in ")
    assert lines[-2] == "... and 10 more"
    assert lines[-1] == str(made)
    assert len(lines) == 22


def test_a_part_says_outcome_reason_and_keeping():
    part = Part("f", "computed", seconds=0.25, keeping="kept", explain=lambda: "these arguments are new")
    assert str(part) == "f: computed in 250 ms (these arguments are new; kept)"
    assert str(Part("f", "failed")) == "f: failed in 0 ms"
    assert part.kept
    assert Part("f", "reused").kept
    assert not Part("f", keeping="being kept").kept


def test_the_page_for_notebooks_is_escaped():
    made = report(Part("<b>f</b>", explain=lambda: "a < b & c"))
    page = made._repr_html_()
    assert "&lt;b&gt;f&lt;/b&gt;" in page
    assert "a &lt; b &amp; c" in page
    assert "<b>" not in page
    assert page.count("<tr>") == 2


def test_details_show_what_nectar_itself_took():
    made = report(Part("a", "computed"))
    assert "own time" not in made.details()
    made.own_time = {"starting": 0.012, "looking up": 0.0, "in the background": 1.5}
    own = made.details().splitlines()[-2]
    assert own == "Nectar's own time in this process: 12 ms starting, 1.5 s in the background"
