"""Runs in MLflow's own environment: makes prompts with MLflow's client, and loads those made under load."""

import json
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import mlflow  # type: ignore[import-not-found]  # it has an environment of its own

AT_ONCE = 8


def main(verb: str) -> None:
    said = json.load(sys.stdin)
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    mlflow.set_tracking_uri(said["url"])
    if verb == "make":
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(partial(make_prompt, said["text"]), said["names"]))
    else:
        check_prompt(said["names"][0], said["text"])
        found = {prompt.name for prompt in mlflow.genai.search_prompts()}
        expect(found >= set(said["names"]), "Not all prompts are found by a search.")


def make_prompt(text: str, name: str) -> None:
    """Two versions between which an alias can move."""
    for words in (text[:100], text):
        made = mlflow.genai.register_prompt(name, words)
        mlflow.genai.set_prompt_alias(name, "canary", made.version)
    mlflow.genai.set_prompt_alias(name, "production", made.version)


def check_prompt(name: str, text: str) -> None:
    """What was created by bare requests is to MLflow's client what it would have made itself."""
    fetched, last = load(f"{name}@production"), load(f"{name}@latest")
    expect(fetched.template == text, "The prompt of the label is not the one that was made.")
    expect(last.version > fetched.version, "No version was created under load.")
    expect(last.template.startswith("Edit ") and last.template.endswith(text), "A version lost its words.")
    kinds = [(one.is_text_prompt, one.tags) for one in (fetched, last)]
    expect(kinds[0] == kinds[1], f"A version created under load is of another kind: {kinds}.")


def load(name: str) -> "mlflow.entities.model_registry.PromptVersion":
    return mlflow.genai.load_prompt(f"prompts:/{name}", cache_ttl_seconds=0)


def expect(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise SystemExit(otherwise)


if __name__ == "__main__":
    main(sys.argv[1])
