"""Validates what quipu-atlas prints against atlas.schema.json: each model whole, and cards alone.

usage: schema_test.py PROGRAM SCHEMA. Exit code 77: the Python package jsonschema is missing.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import stand_in

try:
    import jsonschema
except ImportError:
    print("skipped: the Python package jsonschema is missing")
    sys.exit(77)


def output(*arguments):
    return subprocess.run([sys.argv[1], *arguments], check=True, capture_output=True, text=True).stdout


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    models = [line.split()[0] for line in output("--models").splitlines()]
    assert len(models) == 17, models
    for model in models:
        document = json.loads(output("--model", model, "--format", "json"))
        validator.validate(document)
        assert len(document["cards"]) == 40, model
        # Every link of a symbol leads to a card, or to the configuration.
        ids = {card["id"] for card in document["cards"]} | {"configuration"}
        for card in document["cards"]:
            for operand in card["operands"]:
                assert set(operand["symbol"]["links"]) <= ids, (model, card["id"], operand)
    for model, component in (("llama3_8b", "layers.N.attention.update"), ("llama3_1_8b", "output")):
        card = json.loads(output("--model", model, "--component", component, "--format", "json"))
        validator.validate(card)
        # The schema is not so loose that anything passes.
        for field in schema["definitions"]["card"]["required"]:
            assert not validator.is_valid({k: v for k, v in card.items() if k != field}), field
        card["parameters"]["per_instance"] = -1
        assert not validator.is_valid(card)
    # With a checkpoint, a measured run and a checkout, cards say more.
    sample = str(pathlib.Path(__file__).parent.parent / "data" / "atlas" / "stories15m.profile.json")
    with tempfile.TemporaryDirectory() as folder:
        stand_in.write(folder + "/checkpoint")
        more = ("--model", "stories15m", "--checkpoint", folder + "/checkpoint", "--profile", sample, "--source",
                "meta-llama/llama3=" + folder, "--format", "json")
        document = json.loads(output(*more))
        validator.validate(document)
        assert document["profile"]["target"] == "AVX2" and document["excerpts"]
        assert sum("layer_statistics" in card for card in document["cards"]) == 12
        card = json.loads(output(*more, "--component", "layers.N.attention.wq"))
        validator.validate(card)
        for field in ("checked", "layer_statistics", "measured", "profile", "excerpts"):
            assert field in card, field
            assert not validator.is_valid({**card, field: "broken"}), field
    for arguments in (["--models"], ["--model", "llama3_8b", "--list"], ["--model", "llama3_8b", "--find", "4096"]):
        listing = json.loads(output(*arguments, "--format", "json"))
        validator.validate(listing)
        assert not validator.is_valid({name: [] for name in listing})


main()
