"""Providers other than the CPU's, run: ``python -m tests.campaigns providers [--all] [--only NAME ...] [--write]``.

Each provider comes in an environment of its own. First the small models of ``abilities``: which operators it takes. Then models as
exporters wrote them, the few that are shipped or with ``--all`` the whole corpus: the original and what ``optimize`` makes of it for that target.
``--write`` keeps what was seen in ``tests/data/providers.json``, which ``ortscan/docs/maintainers/providers.md`` and a test of the targets are made of.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.campaigns.providers import abilities, record
from tests.campaigns.providers.cases import ability_job, corpus_job, judge
from tests.campaigns.providers.provider import PROVIDERS, Missing, Provider
from tests.support.corpus import corpus_models


def main() -> int:
    """Run what was asked for; return how many results differ from the CPU's."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns providers")
    parser.add_argument("--all", action="store_true", help="the whole corpus, not only the shipped models")
    parser.add_argument("--only", nargs="+", choices=[each.name for each in PROVIDERS], default=[each.name for each in PROVIDERS])
    parser.add_argument("--write", action="store_true", help=f"keep what was seen in {record.FILE.name}")
    asked = parser.parse_args()
    wrong = 0
    for provider in PROVIDERS:
        if provider.name not in asked.only:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                seen = _seen(provider, Path(folder), asked.all)
            except Missing as missing:
                print(f"{provider.name}: {missing}", file=sys.stderr)
                continue
        print(record.as_text(seen), flush=True)
        wrong += sum(one["after"]["became"].startswith("differs") for one in seen["models"])
        if asked.write:
            record.keep(seen)
    return wrong


def _seen(provider: Provider, folder: Path, all_models: bool) -> dict[str, Any]:
    version = provider.runtime()
    jobs = []
    for ability in abilities.ABILITIES:
        model = abilities.model_of(ability)
        jobs.append(ability_job(f"ability {ability.name}", model, abilities.feeds(model), provider, folder))
    chosen = [param.values[0] for param in corpus_models(shipped_only=not all_models, only=lambda name: "ortext" not in name)]
    jobs += [corpus_job(model, provider, folder, version) for model in chosen]
    known = {job["name"]: job for job in jobs}
    plain = [{key: value for key, value in job.items() if key != "expected"} for job in jobs]
    found: dict[str, list[dict[str, Any]]] = {}
    for answer in provider.run(plain, folder):
        if "results" not in answer:
            continue
        job = known[answer["name"]]
        for said, path in zip(answer["results"], job["models"], strict=True):
            said["became"] = judge(said, path, job["expected"], job["tolerance"])
        found[answer["name"]] = answer["results"]
    mine = provider.provider_names()
    return {
        "name": provider.name,
        "target": provider.target,
        "versions": provider.versions(),
        "about": provider.about,
        "abilities": [record.ability(one, found[f"ability {one.name}"][0], mine) for one in abilities.ABILITIES],
        "models": [record.model(job, found[job["name"]], mine) for job in jobs if not job["name"].startswith("ability ")],
    }


if __name__ == "__main__":
    sys.exit(min(main(), 1))
