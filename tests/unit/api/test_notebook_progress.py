"""Progress as a notebook shows it."""

from pollex.api.verbs import NotebookProgress


def test_a_notebook_shows_a_bar_a_stage_and_notes_as_text() -> None:
    progress = NotebookProgress()
    progress.start("extract", 40, done=10)
    progress.advance("extract", 5)
    progress.note("<b>2 bad rows</b>")
    html = progress.html()
    assert "<progress value='15' max='40'></progress> Extracting reasons 15/40" in html
    assert "&lt;b&gt;2 bad rows" in html
    progress.start("extract", 50)
    assert "Extracting reasons 0/50" in progress.html()
