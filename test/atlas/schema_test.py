"""Validates what quipu-atlas prints against atlas.schema.json: each model whole, and cards alone.

usage: schema_test.py PROGRAM SCHEMA. Exit code 77: the Python package jsonschema is missing.
"""
import json
import subprocess
import sys

try:
    import jsonschema
except ImportError:
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


main()
