"""What the repository says of itself holds: README, API page, BUILD."""

import contextlib
import doctest
import inspect
import pathlib
import re
import tempfile

import keras
from absl.testing import absltest, parameterized

import rum_keras
from zoo import index

ROOT = pathlib.Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
PACKAGES = ("rum_keras", "datasets", "zoo", "exports", "tests")


def sources() -> set[str]:
    """Returns the path of every Python file of the repository."""
    return {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }


def built() -> set[str]:
    """Returns the sources of all targets of BUILD, which is valid Python too."""
    found = set()

    def glob(include, exclude=()):
        matches = {path for pattern in include for path in ROOT.glob(pattern)}
        matches -= {path for pattern in exclude for path in ROOT.glob(pattern)}
        return sorted(path.relative_to(ROOT).as_posix() for path in matches)

    def rule(name, srcs, **_):
        found.update(srcs)

    exec(
        (ROOT / "BUILD").read_text(),
        {"glob": glob, "py_library": rule, "py_binary": rule, "py_test": rule},
    )
    return found


class RepositoryTest(parameterized.TestCase):
    def test_bazel_builds_every_source_file(self):
        self.assertEqual(sources() - built(), set())

    def test_no_recipe_imports_from_another(self):
        recipes = {path.parent.name for path in ROOT.glob("zoo/*/train.py")}
        for recipe in recipes:
            others = "|".join(recipes - {recipe})
            for path in [*ROOT.glob(f"zoo/{recipe}/*.py"), *ROOT.glob(f"tests/zoo/{recipe}/*.py")]:
                imported = re.search(
                    rf"^ *(from|import) .*zoo( import |\.)({others})\b.*", path.read_text(), re.M
                )
                self.assertIsNone(imported, f"{path}: {imported}")

    def test_no_test_imports_from_another(self):
        # Bazel gives a test what is no test alone.
        for path in ROOT.glob("tests/**/*.py"):
            imported = re.search(r"^ *(from|import) tests\b.*_test\b.*", path.read_text(), re.M)
            self.assertIsNone(imported, f"{path}: {imported}")

    def test_the_python_examples_of_the_readme_run(self):
        examples = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
        self.assertNotEmpty(examples)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            exec("\n".join(examples), {})

    def test_flagfiles_in_the_readme_exist(self):
        flagfiles = re.findall(r"zoo/\w+/(?!NAME)\w+\.flags", README)
        self.assertNotEmpty(flagfiles)
        for flagfile in flagfiles:
            self.assertTrue((ROOT / flagfile).is_file(), flagfile)

    def test_the_index_says_what_the_flagfiles_say(self):
        # If not, `python -m zoo.index` writes it again.
        written = index.BEGIN + index.tables(ROOT) + index.END
        self.assertTrue(written in README, "README.md is behind: python -m zoo.index")

    def test_every_flagfile_is_in_the_readme_or_the_card_of_its_task(self):
        for flagfile in ROOT.glob("zoo/*/*.flags"):
            card = flagfile.with_name("README.md").read_text()
            self.assertIn(flagfile.stem, README + card)

    def test_targets_of_make_in_the_readme_exist(self):
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        self.assertContainsSubset(re.findall(r"\bmake ([a-z-]+)`?", README), targets)

    def test_links_in_markdown_lead_to_files(self):
        pages = [
            *ROOT.glob("*.md"),
            *(page for top in PACKAGES for page in ROOT.glob(f"{top}/**/*.md")),
        ]
        for page in pages:
            for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
                self.assertTrue((page.parent / link).exists(), f"{page}: {link}")


class PublicNameTest(parameterized.TestCase):
    @parameterized.parameters(rum_keras.__all__)
    def test_has_a_line_in_the_api_page(self, name):
        self.assertIn(f"- `{name}(", (ROOT / "rum_keras/README.md").read_text())

    @parameterized.parameters(rum_keras.__all__)
    def test_has_an_example_that_runs(self, name):
        public = getattr(rum_keras, name)
        self.assertIn("Example:", public.__doc__)
        globs = {"keras": keras, "rum_keras": rum_keras}
        tests = doctest.DocTestFinder(recurse=False).find(public, name, globs=globs)
        results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(tests[0])
        self.assertGreater(results.attempted, 0)
        self.assertEqual(results.failed, 0)

    @parameterized.parameters(rum_keras.__all__)
    def test_has_type_hints(self, name):
        public = getattr(rum_keras, name)
        signature = inspect.signature(public.__init__ if inspect.isclass(public) else public)
        for parameter in signature.parameters.values():
            if parameter.name != "self":
                self.assertIsNot(parameter.annotation, inspect.Parameter.empty, parameter.name)


if __name__ == "__main__":
    absltest.main()
