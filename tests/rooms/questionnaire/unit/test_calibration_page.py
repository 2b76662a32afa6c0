"""The page about a calibrator: hostile text is inert, what is undefined is said in words, little data has a page."""

import re
from dataclasses import replace

import pytest
from calibration_data_by_hand import ASSESSED, UNDEFINED, material, measured
from pages_read import HOSTILE, Reader, loud

from pollex.measures.intervals import Figure
from pollex.rooms.questionnaire.reports.calibration import ComparedModel, calibration_page


@pytest.fixture(scope="module")
def harmless() -> Reader:
    return Reader(calibration_page(material()))


def test_hostile_text_in_every_field_makes_no_element_and_no_attribute_and_is_shown(
    harmless: Reader,
) -> None:
    for text in ("<b>&amp; $body ", *HOSTILE[::3]):
        read = Reader(calibration_page(material(lambda words, text=text: text + words)))
        assert (read.elements, read.links) == (harmless.elements, harmless.links), text[:80]
        if text.startswith("<b>"):
            shown = (
                "overall",
                "calibrator (ordinal)",
                "ann",
                "Q1",
                "V1",
                "a.csv:3",
                "ordinal mixed effects",
                "ridge",
            )
            assert all(text + one in read.words for one in shown)


def test_the_page_needs_nothing_else(harmless: Reader) -> None:
    text = calibration_page(material(lambda words: words + " http://example.org/a"))
    assert "default-src 'none'; style-src 'sha256-" in text
    assert "//" not in text
    assert loud(harmless) == set()
    assert all(link.startswith("#") for link in harmless.links)
    assert harmless.headings[0] == 1
    assert all(
        after - before <= 1
        for before, after in zip(harmless.headings, harmless.headings[1:], strict=False)
    )
    assert calibration_page(material()) == calibration_page(material())


def test_models_choice_gains_and_the_curve_are_told(harmless: Reader) -> None:
    made = material()
    assert made.choice is not None
    for said in (
        "not clearly better than a constant",
        "network has the lower log-loss here, by 0.500.",
        made.choice.sentence(),
        "no answer to take",
        "Together, with these weights: ordinal slopes=none (0.70) and ridge (0.30).",
        "Mean and standard deviation over draws",
        "in bins with about the same number of judgments; 95\N{NO-BREAK SPACE}% interval",
    ):
        assert said in harmless.words
    gains = re.findall(r"(helps|harms|may be noise)", harmless.words.partition("Rises by")[2])
    assert gains == ["helps", "may be noise", "harms"]
    single = tuple(replace(point, deviation=None) for point in made.learning)
    ahead = (ComparedModel("it", ASSESSED), ComparedModel("constant", ASSESSED, measured(0.5)))
    words = Reader(calibration_page(replace(made, learning=single, compared=ahead))).words
    assert "not clearly better than a constant" not in words
    assert "One draw of texts for each point" in words
    assert "standard deviation over draws" not in words


def test_all_undefined_figures_are_words() -> None:
    made = material()
    nothing = replace(
        made,
        agreement=measured(None, undefined="no text has two judges"),
        compared=(
            ComparedModel("it", UNDEFINED),
            ComparedModel("constant", UNDEFINED, measured(None)),
        ),
        subgroups={"system": {"V1": UNDEFINED}},
        responses=(),
        mesh=(),
        gains=(),
        learning=(),
        leverages=(),
        reliabilities=(),
        choice=None,
        faults=(),
    )
    words = Reader(calibration_page(nothing)).words
    assert "no text has two judges" in words
    assert "all answers are alike" in words
    assert "Nothing was left out" in words
    assert not re.search(r"\b(nan|None|inf)\b", words)


def test_of_too_few_texts_figures_have_no_interval_and_no_word_promises_one() -> None:
    made = material()
    lone = Figure(0.5, None, None, 80, 4)
    own = replace(made.own, log_loss=lone, pearson=lone, smece=lone, smece_of={1.0: lone})
    compared = (ComparedModel("it", own), *made.compared[1:])
    words = Reader(calibration_page(replace(made, compared=compared, agreement=lone))).words
    assert "the predictions have a log-loss of 0.500 (no interval)" in words
    assert "Krippendorff's α, no interval" in words
    assert "smECE 0.500 (no interval)" in words
    assert "no interval where fewer than 5 texts support the figure" in words
    assert not re.search(r"95\s%\sinterval\s+no interval", words)


def test_what_the_kept_one_learnt_from_is_said_and_that_it_is_not_known() -> None:
    def words(learned_from: int | None) -> str:
        return Reader(calibration_page(replace(material(), learned_from=learned_from))).words

    assert "learned from 7 of these texts; the figures are of models fitted anew" in words(7)
    assert (
        "It is not known which texts the kept calibrator learned from; the figures are of models fitted anew"
        in words(None)
    )
    assert "fitted anew" not in words(0)
    few = Reader(calibration_page(material(labels=30))).words
    assert "Not yet calibrated: 30 of 50 labels, 20 are missing." in few
    assert "Calibrated on 50 labels." in Reader(calibration_page(material(labels=50))).words


def test_every_figure_of_every_model_has_its_interval_and_the_name_of_its_column() -> None:
    assessed = replace(ASSESSED, smece=measured(0.3, half=0.123))
    models = [
        ComparedModel(name, assessed, measured(0.05))
        for name in ("calibrator", "constant", "ridge")
    ]
    odd = ComparedModel("argmax", assessed, measured(None, undefined="never said"))
    page = calibration_page(replace(material(), compared=(*models, odd)))
    assert Reader(page).words.count("0.177 to 0.423") == 4 + 1  # and in the headline
    assert '<td data-column="Log-loss behind"><span class="undefined">never said' in page
    assert "are left out" not in Reader(page).words
    spared = replace(ASSESSED, smece=Figure(0.3, None, None, 80, 40))
    models = [
        ComparedModel("calibrator", assessed),
        ComparedModel("constant", spared, measured(0.05)),
    ]
    words = Reader(calibration_page(replace(material(), compared=tuple(models)))).words
    assert "the intervals of the others' smECE would take minutes, and are left out" in words
