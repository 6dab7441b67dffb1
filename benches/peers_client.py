"""Create and check prompts with MLflow's client; runs in MLflow's own virtual environment."""

import json
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import mlflow  # type: ignore[import-not-found]  # it has an environment of its own

THREADS = 8


def main(action: str) -> None:
    options = json.load(sys.stdin)
    logging.getLogger("mlflow").setLevel(logging.ERROR)
    mlflow.set_tracking_uri(options["url"])
    if action == "make":
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(partial(make_prompt, options["text"]), options["names"]))
    else:
        check_prompt(options["names"][0], options["text"])
        names = {prompt.name for prompt in mlflow.genai.search_prompts()}
        expect(names >= set(options["names"]), "Not all prompts are found by a search.")


def make_prompt(text: str, name: str) -> None:
    """Create a prompt with two versions, between which an alias can move."""
    for template in (text[:100], text):
        prompt = mlflow.genai.register_prompt(name, template)
        mlflow.genai.set_prompt_alias(name, "canary", prompt.version)
    mlflow.genai.set_prompt_alias(name, "production", prompt.version)


def check_prompt(name: str, text: str) -> None:
    """Check that versions created by plain HTTP requests look to MLflow's client like its own."""
    fetched, last = load_prompt(f"{name}@production"), load_prompt(f"{name}@latest")
    expect(fetched.template == text, "The prompt of the label is not the one that was made.")
    expect(last.version > fetched.version, "No version was created under load.")
    expect(last.template.startswith("Edit ") and last.template.endswith(text), "A version lost its words.")
    kinds = [(prompt.is_text_prompt, prompt.tags) for prompt in (fetched, last)]
    expect(kinds[0] == kinds[1], f"A version created under load is of another kind: {kinds}.")


def load_prompt(name: str) -> "mlflow.entities.model_registry.PromptVersion":
    return mlflow.genai.load_prompt(f"prompts:/{name}", cache_ttl_seconds=0)


def expect(condition: bool, message: str) -> None:
    if not condition:
        raise SystemExit(message)


if __name__ == "__main__":
    main(sys.argv[1])
