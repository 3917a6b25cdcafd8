"""Stubs of the repositories that Bazel 4's own tools name, so that nothing is ever downloaded.

Bazel resolves these names for any build, even one of Python alone; the real ones live on GitHub.
"""

_NATIVE = "def {name}(**attrs):\n    native.{name}(**attrs)\n"

def _stub_repository_impl(repository_ctx):
    repository_ctx.file("WORKSPACE", "workspace(name = \"{}\")\n".format(repository_ctx.name))
    if repository_ctx.attr.rules:
        package = repository_ctx.attr.package
        rules = [_NATIVE.format(name = name) for name in repository_ctx.attr.rules]
        repository_ctx.file(package + "/BUILD", "")
        repository_ctx.file(package + "/defs.bzl", "\n".join(rules))
    filegroups = [
        "filegroup(name = \"{}\", visibility = [\"//visibility:public\"])".format(name)
        for name in repository_ctx.attr.filegroups
    ]
    repository_ctx.file("BUILD", "\n".join(filegroups))

_stub_repository = repository_rule(
    implementation = _stub_repository_impl,
    attrs = {
        "package": attr.string(doc = "The package of defs.bzl, which gives native rules their names."),
        "rules": attr.string_list(),
        "filegroups": attr.string_list(doc = "Empty targets of the root package."),
    },
)

def offline_repositories():
    """Declares every external repository that a build of this workspace reaches."""
    _stub_repository(
        name = "rules_cc",
        package = "cc",
        rules = ["cc_binary", "cc_library", "cc_test", "cc_toolchain", "cc_toolchain_suite"],
    )
    _stub_repository(
        name = "rules_java",
        package = "java",
        rules = ["java_import", "java_runtime", "java_toolchain"],
    )
    _stub_repository(
        name = "remote_coverage_tools",
        filegroups = ["coverage_report_generator", "lcov_merger"],
    )
