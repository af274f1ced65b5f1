"""The workloads: the six of the catalog, their counts, their overrides, and a user's own."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from rnnbench.domain.catalog import CATALOG, load_workloads, override, parse_workload
from rnnbench.domain.workload import Workload, compulsory_bytes, flops, lengths, parameter_count, parameter_shapes
from rnnbench.errors import UserError

SPEECH = {"features": 123, "hidden": 320, "head_bias": False, "vocabulary": 0, "embedding": 0}
LAST_STEP = {"head_on": "last-step", "loss": "cross-entropy", "classes": 10, "labels": 0, "shortest": 0}

TABLE = {
    "ptb-lm": {
        "batch": 128, "steps": 50, "vocabulary": 10001, "embedding": 128, "features": 0,
        "layers": 3, "hidden": 256, "bidirectional": False,
        "classes": 10001, "head_bias": True, "head_on": "every-step",
        "loss": "cross-entropy", "labels": 0, "shortest": 0,
    },
    "ce-short": {"batch": 64, "steps": 100, "layers": 1, "bidirectional": False, **SPEECH, **LAST_STEP},
    "ce-long": {"batch": 32, "steps": 1000, "layers": 1, "bidirectional": False, **SPEECH, **LAST_STEP},
    "bi-ce-long": {"batch": 32, "steps": 1000, "layers": 4, "bidirectional": True, **SPEECH, **LAST_STEP},
    "bi-ctc-long": {
        "batch": 32, "steps": 1000, "layers": 4, "bidirectional": True, **SPEECH,
        "classes": 59, "head_on": "every-step", "loss": "ctc", "labels": 100, "shortest": 500,
    },
    "elman-step": {
        **LAST_STEP, "batch": 1, "steps": 1, "layers": 1, "bidirectional": False, "features": 10, "hidden": 20,
        "head_bias": False, "vocabulary": 0, "embedding": 0, "loss": "sum", "classes": 0,
    },
}  # fmt: skip


def test_the_catalogue_is_the_table_of_the_design():
    found = {name: msgspec.structs.asdict(workload) for name, workload in CATALOG.items()}
    for fields in found.values():
        assert fields.pop("origin").startswith(("Braun", "Carrot", "Lazarus"))
        assert fields.pop("cell") == "lstm"
        assert fields.pop("own") is None
    assert found == {name: {"name": name, **fields} for name, fields in TABLE.items()}


# One layer has four gates, each with a row per input and per unit, and a bias.
PARAMETERS = {
    "ptb-lm": 10001 * 128 + (128 + 256 + 1) * 1024 + 2 * (256 + 256 + 1) * 1024 + (256 + 1) * 10001,
    "ce-short": (123 + 320 + 1) * 1280 + 320 * 10,
    "ce-long": (123 + 320 + 1) * 1280 + 320 * 10,
    "bi-ce-long": 2 * (123 + 320 + 1) * 1280 + 3 * 2 * (640 + 320 + 1) * 1280 + 640 * 10,
    "bi-ctc-long": 2 * (123 + 320 + 1) * 1280 + 3 * 2 * (640 + 320 + 1) * 1280 + 640 * 59,
    "elman-step": 20 * 20 + 20 * 10,
}


def test_parameters_are_counted_as_by_hand():
    assert {name: parameter_count(workload) for name, workload in CATALOG.items()} == PARAMETERS
    assert PARAMETERS["ptb-lm"] == 5_295_249
    assert PARAMETERS["ce-short"] == 571_520
    assert PARAMETERS["bi-ce-long"] == 8_523_520
    assert PARAMETERS["bi-ctc-long"] == 8_554_880


def test_a_second_bias_adds_four_gates_per_layer_and_direction():
    assert parameter_count(CATALOG["ce-short"], biases=2) == 572_800
    assert parameter_count(CATALOG["ptb-lm"], biases=2) == 5_295_249 + 3 * 1024
    assert parameter_count(CATALOG["bi-ctc-long"], biases=2) == 8_554_880 + 4 * 2 * 1280


def test_parameters_lie_in_the_canonical_layout():
    assert parameter_shapes(parse_workload("ptb-lm[layers=1]")) == {
        "embedding": (10001, 128),
        "layer0.fwd.w": (128, 1024),
        "layer0.fwd.u": (256, 1024),
        "layer0.fwd.b": (1024,),
        "head.w": (256, 10001),
        "head.b": (10001,),
    }
    both_ways = parameter_shapes(parse_workload("bi-ce-long[layers=2]"))
    assert list(both_ways) == [
        *(f"layer{layer}.{way}.{kind}" for layer in (0, 1) for way in ("fwd", "bwd") for kind in "wub"),
        "head.w",
    ]
    assert both_ways["layer1.bwd.w"] == (640, 1280)
    assert both_ways["head.w"] == (640, 10)


# The lengths of bi-ctc-long: evenly from 1000 down to 500, 32 of them.
STEPS = 24_000
# Two operations for each weight and each step (the last-step head: each sequence). Of the topmost layer of
# bi-ce-long the head reads one step, which is the first one of the backward direction.
FORWARD = {
    "ptb-lm": 2 * 6400 * (1024 * (384 + 512 + 512) + 256 * 10001),
    "ce-short": 2 * (6400 * 1280 * 443 + 64 * 320 * 10),
    "ce-long": 2 * (32000 * 1280 * 443 + 32 * 320 * 10),
    "bi-ce-long": 2 * (32000 * 1280 * (2 * (443 + 2 * 960) + 960) + 32 * 1280 * 960 + 32 * 640 * 10),
    "bi-ctc-long": 2 * STEPS * (2560 * (443 + 3 * 960) + 640 * 59),
    "elman-step": 2 * 20 * (20 + 10),
}
# The gradient with respect to the data is not needed: one product less.
SPARED = {
    "ptb-lm": 0,
    "ce-short": 2 * 6400 * 1280 * 123,
    "ce-long": 2 * 32000 * 1280 * 123,
    "bi-ce-long": 2 * 32000 * 2560 * 123,
    "bi-ctc-long": 2 * STEPS * 2560 * 123,
    "elman-step": 2 * 20 * (20 + 10),  # neither the input nor the state before needs a gradient
}


def test_operations_are_counted_as_by_hand():
    for name, workload in CATALOG.items():
        assert flops(workload, "forward") == FORWARD[name]
        assert flops(workload, "train") == 3 * FORWARD[name] - SPARED[name]
    assert FORWARD["ptb-lm"] == 51_226_214_400
    assert flops(CATALOG["ptb-lm"], "train") == 153_678_643_200
    assert flops(CATALOG["ce-short"], "forward") == 7_258_521_600
    assert flops(CATALOG["ce-short"], "train") == 19_760_332_800
    # 1.6 TFLOP, if every sequence were as long as the longest.
    assert flops(parse_workload("bi-ctc-long[shortest=1000]"), "train") == 1_620_418_560_000
    assert flops(CATALOG["bi-ctc-long"], "train") == 1_620_418_560_000 * STEPS // 32_000


def test_bytes_are_counted_as_by_hand():
    # inputs + parameters + logits; training: inputs + targets + parameters and two moments, in and out
    assert compulsory_bytes(CATALOG["ce-short"], "forward") == 64 * 100 * 123 * 4 + 571_520 * 4 + 64 * 10 * 4
    assert compulsory_bytes(CATALOG["ce-short"], "train") == 64 * 100 * 123 * 4 + 64 * 8 + 571_520 * 24
    # a single step: input, previous state and parameters; the new state, or parameters and moments in and out
    assert compulsory_bytes(CATALOG["elman-step"], "forward") == (10 + 20 + 600 + 20) * 4
    assert compulsory_bytes(CATALOG["elman-step"], "train") == (10 + 20 + 6 * 600) * 4
    assert compulsory_bytes(CATALOG["ptb-lm"], "train") == 6400 * 8 + 6400 * 8 + 5_295_249 * 24
    assert compulsory_bytes(CATALOG["bi-ctc-long"], "train") == STEPS * 123 * 4 + 3200 * 8 + 8_554_880 * 24
    # An embedding is not read as a whole; logits have the width of the precision, and padded steps have none.
    words = (5_295_249 - 10001 * 128) * 4
    assert compulsory_bytes(CATALOG["ptb-lm"], "forward") == 6400 * 8 + words + 6400 * 10001 * 4
    assert compulsory_bytes(CATALOG["ptb-lm"], "forward", "bf16") == 6400 * 8 + words + 6400 * 10001 * 2
    assert compulsory_bytes(CATALOG["bi-ctc-long"], "forward") == STEPS * 123 * 4 + 8_554_880 * 4 + STEPS * 59 * 4


def test_lengths_are_spread_evenly_from_all_steps_to_the_shortest():
    found = lengths(CATALOG["bi-ctc-long"])
    gaps = {before - after for before, after in pairwise(found)}
    assert (len(found), found[0], found[-1]) == (32, 1000, 500)
    assert gaps == {16, 17}
    assert lengths(CATALOG["ce-short"]) == [100] * 64
    assert lengths(parse_workload("bi-ctc-long[batch=1]")) == [1000]


# --- overrides ------------------------------------------------------------------------------------


def test_the_name_says_what_was_changed_sorted_and_nothing_else():
    assert parse_workload("ptb-lm").name == "ptb-lm"
    assert parse_workload("ptb-lm[steps=20,batch=16]").name == "ptb-lm[batch=16,steps=20]"
    assert parse_workload("ptb-lm[batch=16,steps=50]").name == "ptb-lm[batch=16]"
    assert parse_workload(" ce-short [ batch = 8 , ] ").name == "ce-short[batch=8]"
    assert parse_workload("ce-short[batch=64]") is CATALOG["ce-short"]
    assert parse_workload("ce-short[]") is CATALOG["ce-short"]
    assert parse_workload("ptb-lm[batch=16]").id == "ptb-lm"


def test_only_what_was_named_changes():
    assert parse_workload("ce-short[hidden=7]") == msgspec.structs.replace(
        CATALOG["ce-short"], name="ce-short[hidden=7]", hidden=7
    )


def test_a_language_model_predicts_the_words_it_reads():
    smaller = parse_workload("ptb-lm[vocabulary=50]")
    assert (smaller.vocabulary, smaller.classes, smaller.name) == (50, 50, "ptb-lm[vocabulary=50]")


def test_lengths_stay_spread_over_the_same_share_of_the_steps():
    assert parse_workload("bi-ctc-long[steps=400]").shortest == 200
    assert parse_workload("bi-ctc-long[steps=400,shortest=300]").shortest == 300
    assert parse_workload("bi-ctc-long[steps=1,labels=1]").shortest == 1
    assert parse_workload("ce-long[steps=10]").shortest == 0


def test_a_given_number_is_named_if_another_would_have_been_derived():
    given_back = parse_workload("bi-ctc-long[steps=800,shortest=500]")
    assert given_back.shortest == 500
    assert given_back.name == "bi-ctc-long[shortest=500,steps=800]"
    assert parse_workload(given_back.name) == given_back


@st.composite
def overridden(draw):
    """Any workload with any of its numbers changed, some of them to the same value."""
    base = draw(st.sampled_from(list(CATALOG.values())))
    fields = ["batch", "hidden"] if base.one_step else ["batch", "steps", "hidden", "layers"]
    fields += ["vocabulary", "embedding"] if base.vocabulary else ["features"]
    fields += ["classes"] if base.features and not base.one_step else []
    fields += ["shortest", "labels"] if base.loss == "ctc" else []
    small = {"layers": 6, "labels": 40}
    numbers = {
        field: draw(st.just(getattr(base, field)) | st.integers(1, small.get(field, 2000)))
        for field in draw(st.lists(st.sampled_from(fields), unique=True))
    }
    try:
        return override(base, numbers)
    except UserError:  # more labels than fit, say
        assume(False)


@settings(deadline=None)
@given(overridden())
@example(override(CATALOG["bi-ctc-long"], {"steps": 800, "shortest": 500}))
def test_reading_a_workloads_name_gives_the_same_workload(workload):
    assert parse_workload(workload.name) == workload


# --- bad input --------------------------------------------------------------------------------------

BAD_NAMES = {
    "ptb-ln": ("no workload is named 'ptb-ln'", "nearest: ptb-lm"),
    "zzzz": (
        "no workload is named 'zzzz'",
        "there are: ptb-lm, ce-short, ce-long, bi-ce-long, bi-ctc-long, elman",
    ),
    "": ("cannot read the workload ''", "ptb-lm[batch=16,steps=20]"),
    "ce-short[batch=8": ("cannot read the workload", "ptb-lm[batch=16,steps=20]"),
    "ce-short[batch=8][steps=3]": ("cannot read the workload", "ptb-lm[batch=16,steps=20]"),
    "ce-short[size=8]": ("'size'", "allowed: batch, steps, hidden, classes, layers, features, vocabulary"),
    "ce-short[loss=8]": ("'loss'", "allowed: batch"),
    "ce-short[batch]": ("'batch' in", "batch=16"),
    "ce-short[batch=]": ("needs a whole number", "batch=16"),
    "ce-short[batch=eight]": ("needs a whole number", "batch=16"),
    "ce-short[batch=8.5]": ("needs a whole number", "batch=16"),
    "ce-short[batch=-8]": ("needs a whole number", "batch=16"),
    "ce-short[batch=10000000000]": ("batch=10000000000 is too large", "at most 1,000,000"),
    "ce-short[batch=2000000]": ("batch is too large: 2,000,000, at most 1,000,000", "a smaller number"),
    "ce-short[batch=0]": ("batch must be at least 1", "it is 0"),
    "ce-short[steps=0]": ("steps must be at least 1", "it is 0"),
    "ce-short[hidden=0]": ("hidden must be at least 1", "it is 0"),
    "ce-short[classes=0]": ("classes must be at least 1", "it is 0"),
    "ce-short[layers=0]": ("layers must be at least 1", "it is 0"),
    "ce-short[features=0]": ("token ids or real numbers", "vocabulary and embedding, or features"),
    "ce-short[vocabulary=9,embedding=4]": ("token ids or real numbers", "not both"),
    "ptb-lm[features=3]": ("token ids or real numbers", "not both"),
    "ptb-lm[embedding=0]": ("belong together", "give both or neither"),
    "ptb-lm[classes=10]": ("predicts the next token", "set classes to the vocabulary"),
    "ce-short[shortest=50]": ("defined for the CTC loss only", "leave shortest at 0"),
    "ce-short[labels=5]": ("labels belong to the CTC loss", "leave labels at 0"),
    "bi-ctc-long[shortest=1001]": ("shortest (1001) is longer than steps (1000)", "lower shortest or raise steps"),
    "bi-ctc-long[classes=1]": ("at least 2 classes", "class 0 is the blank"),
    "elman-step[steps=2]": ("a single step", "only batch, features and hidden"),
    "elman-step[classes=2]": ("a single step", "set classes to 0"),
    "bi-ctc-long[labels=0]": ("0 labels do not fit", "labels may be 1 to 250"),
    "bi-ctc-long[labels=251]": ("251 labels do not fit the shortest sequence (500 steps)", "labels may be 1 to 250"),
    "bi-ctc-long[steps=100]": ("100 labels do not fit the shortest sequence (50 steps)", "labels may be 1 to 25"),
}


@pytest.mark.parametrize("text", BAD_NAMES)
def test_a_bad_name_is_refused_with_what_is_allowed(text):
    what, hint = BAD_NAMES[text]
    with pytest.raises(UserError) as caught:
        parse_workload(text)
    assert what in caught.value.what
    assert hint in caught.value.hint


# --- a user's own -------------------------------------------------------------------------------------

MINE = """
[workload.tiny-speech]
batch = 8
steps = 50
features = 40
layers = 2
hidden = 64
bidirectional = true
classes = 30
head_on = "every-step"
loss = "ctc"
labels = 10
shortest = 25

[workload.words]
batch = 2
steps = 3
vocabulary = 11
embedding = 5
hidden = 4
classes = 11
head_bias = true
head_on = "every-step"
"""


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return path

    return write


def test_a_users_workloads_come_from_toml_and_can_be_overridden_too(written):
    own = load_workloads(written(MINE))
    assert list(own) == ["tiny-speech", "words"]
    assert own["words"] == Workload(
        name="words", batch=2, steps=3, vocabulary=11, embedding=5, hidden=4, classes=11, head_bias=True,
        head_on="every-step", origin="mine.toml",
    )  # fmt: skip
    assert parse_workload("tiny-speech[steps=40]", own).shortest == 20


TINY = "batch = 8\nsteps = 5\nhidden = 4\nclasses = 3\n"

BAD_FILES = {
    "not TOML": ("batch =", "is not TOML"),
    "nothing in it": ("", "no table [workload.NAME]"),
    "no tables": ("workload = 3", "no table [workload.NAME]"),
    "a list": ("[[workload]]\nbatch = 3", "no table [workload.NAME]"),
    "a workload that is not a table": ("[workload]\ntiny = 3", "tiny"),
    "a bad name": (f"[workload.'Tiny Speech']\n{TINY}features = 2", "'Tiny Speech' is not a workload name"),
    "a name with brackets": (f"[workload.'tiny[batch=3]']\n{TINY}features = 2", "is not a workload name"),
    "a taken name": (f"[workload.ce-short]\n{TINY}features = 2", "'ce-short' is already a workload"),
    "an unknown field": (f"[workload.tiny]\n{TINY}features = 2\nlayer = 2", "unknown fields layer"),
    "a missing field": ("[workload.tiny]\nbatch = 8", "missing required field"),
    "a word for a number": (f"[workload.tiny]\n{TINY}features = 'two'", "Expected `int`, got `str`"),
    "half a unit": (f"[workload.tiny]\n{TINY}features = 2.5", "Expected `int`, got `float`"),
    "another loss": (f"[workload.tiny]\n{TINY}features = 2\nloss = 'mse'", "Invalid enum value 'mse'"),
    "no batch": (f"[workload.tiny]\n{TINY.replace('8', '0')}features = 2", "batch must be at least 1"),
    "no input": (f"[workload.tiny]\n{TINY}", "token ids or real numbers"),
    "negative features": (f"[workload.tiny]\n{TINY}features = -2", "features"),
    "a negative embedding": (
        f"[workload.tiny]\n{TINY}vocabulary = 3\nembedding = -2\nhead_on = 'every-step'",
        "embedding",
    ),
    "a negative shortest": (f"[workload.tiny]\n{TINY}features = 2\nshortest = -2", "shortest"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_bad_file_is_refused_with_what_to_do(written, kind):
    text, what = BAD_FILES[kind]
    with pytest.raises(UserError) as caught:
        load_workloads(written(text))
    assert what in caught.value.what
    assert caught.value.hint


def test_an_unknown_field_is_answered_with_all_fields(written):
    with pytest.raises(UserError) as caught:
        load_workloads(written(f"[workload.tiny]\n{TINY}features = 2\nlayer = 2"))
    assert {"batch", "layers", "head_on", "labels"} <= set(caught.value.hint.removeprefix("allowed: ").split(", "))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"cannot read .*nowhere.toml: No such file"):
        load_workloads(tmp_path / "nowhere.toml")
    (tmp_path / "latin.toml").write_bytes(b"# \xe4\n")
    with pytest.raises(UserError, match="is not TOML"):
        load_workloads(tmp_path / "latin.toml")
