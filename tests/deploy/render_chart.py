"""Renders the chart by Helm's own engine, as a process of its own: that engine is Go's, which
changes how a process takes signals.

It reads values as JSON, and prints the objects, or the error, as JSON. Without values it lints."""

import json
import sys

import helm_python as helm
import yaml


def main(chart: str) -> None:
    values = json.load(sys.stdin)
    if values is None:
        print(json.dumps(helm.lint(chart, strict=True)))
        return
    try:
        with helm.Chart.load(chart) as loaded:
            made = loaded.render(values, name="shop", namespace="tacit")
    except helm.HelmError as error:
        print(json.dumps({"error": str(error)}))
        return
    objects = [
        each
        for name in sorted(made)
        if not name.endswith((".tpl", ".txt"))
        for each in yaml.safe_load_all(made[name])
        if each is not None
    ]
    print(json.dumps({"objects": objects}))


if __name__ == "__main__":
    main(sys.argv[1])
