//! Files that other programs execute as part of ordinary work: build files, scripts, hooks and settings that name
//! programs. Unlike [protected](crate::protected) names, commands in the sandbox may change them, because nothing runs
//! them before the user does. The list is in `executed_names.txt`; hidden files count too, because most of them configure
//! a program.

use crate::name_list::NameList;
use std::path::Path;
use std::sync::LazyLock;

static NAMES: LazyLock<Names> = LazyLock::new(|| Names::parse(include_str!("executed_names.txt")));

/// Returns what executes a file with this name, in words for users: `make` for `Makefile`. `inside` is relative to a
/// writable directory.
pub fn executed_by(inside: &Path) -> Option<&'static str> {
    let parent = inside.parent().and_then(Path::file_name);
    let by_name = inside
        .file_name()
        .and_then(|name| NAMES.files.find(parent, name));
    by_name
        .or_else(|| executed_in(inside))
        .or_else(|| is_hidden(inside).then_some(HIDDEN))
}

/// Returns what executes the files in a directory, in words for users: `cargo` for `.cargo`. `inside` is relative to a
/// writable directory.
pub fn executed_in(inside: &Path) -> Option<&'static str> {
    let mut above = inside.ancestors().filter_map(|directory| {
        let parent = directory.parent().and_then(Path::file_name);
        NAMES.directories.find(parent, directory.file_name()?)
    });
    above.next().or_else(|| is_hidden(inside).then_some(HIDDEN))
}

/// What executes a hidden file that is not on the list.
const HIDDEN: &str = "a program that it may configure, because it is hidden";

/// Whether the path or a directory above it is hidden.
fn is_hidden(inside: &Path) -> bool {
    let mut parts = inside.components();
    parts.any(|part| part.as_os_str().as_encoded_bytes().starts_with(b"."))
}

/// The names with what executes them.
#[derive(Default)]
struct Names {
    files: NameList<&'static str>,
    directories: NameList<&'static str>,
}

impl Names {
    /// Parses the list: what executes files, and below it, indented, their names. A directory ends with a slash.
    fn parse(text: &'static str) -> Self {
        let mut names = Self::default();
        let mut program = "";
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if !line.starts_with(' ') {
                program = line.trim();
                continue;
            }
            for name in line.split_whitespace() {
                match name.strip_suffix('/') {
                    Some(directory) => names.directories.add(directory, program),
                    None => names.files.add(name, program),
                }
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_list_has_a_program_and_is_found() {
        let mut program = "";
        for line in include_str!("executed_names.txt").lines() {
            if line.starts_with('#') || line.trim().is_empty() {
                continue;
            }
            if !line.starts_with(' ') {
                program = line;
                continue;
            }
            for name in line.split_whitespace() {
                assert!(!program.is_empty(), "{name}");
                let last = name.trim_end_matches('/').rsplit('/').next().unwrap();
                assert!(!last.trim_matches('*').contains('*'), "{name}");
                let path = name.replace('*', "x");
                let path = if path.ends_with('/') {
                    path + "x"
                } else {
                    path
                };
                assert!(executed_by(Path::new(&path)).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn what_hooks_editors_builds_and_deployments_execute_is_on_the_list() {
        for path in [
            ".lefthook-local.yml",
            "lefthook.json",
            ".simple-git-hooks.json",
            "simple-git-hooks.js",
            "captainhook.json",
            "grumphp.yml",
            "hk.pkl",
            "rust-analyzer.toml",
            ".bsp/sbt.json",
            "hie.yaml",
            ".vimspector.json",
            "devbox.json",
            ".gitpod.yml",
            ".codesandbox/tasks.json",
            ".config/nextest.toml",
            "Trunk.toml",
            "conanfile.py",
            "app.pro",
            "debian/rules",
            "Directory.Build.rsp",
            "setup.wixproj",
            ".config/dotnet-tools.json",
            "build.cake",
            "buildSrc/src/Version.kt",
            "project/Dependencies.scala",
            "tasks.py",
            "gatsby-node.js",
            "webpack.config.babel.js",
            "vitest.workspace.ts",
            ".golangci.yml",
            "config.ru",
            "cdk.json",
            "helmfile.yaml",
            ".ddev/config.yaml",
            ".woodpecker/build.yml",
            ".drone.star",
            ".zuul.yaml",
            "vendor/.vscode/tasks.json",
            "third_party/.husky/pre-commit",
            "addon/binding.gyp",
            "common.gypi",
            "Package@swift-5.9.swift",
            "Lib.podspec",
            "tox.toml",
            "src/Makevars",
            "src/Makevars.win",
            "rebar.config.script",
            "Setup.lhs",
            "package.json5",
            "turbo.jsonc",
            "BUILD.gn",
            "tools/bazel",
            "extconf.rb",
            "Makefile.toml",
            "user.clj",
            "deps/build.jl",
            "schema.prisma",
            "azure.yaml",
            "debian/postinst",
            "patches/left-pad.patch",
            "env/pyvenv.cfg",
            "env/bin/activate",
            "env/bin/activate.fish",
            "env/bin/activate_this.py",
            "env/Scripts/Activate.ps1",
            "rules.make",
            "make.inc",
            "Make.rules",
            "Makefile-linux",
            "Makefile_common",
            "CMakeFiles/Makefile2",
            "Kconfig.debug",
            "src/Makefile.am",
            "CMakeCache.txt",
            "CMakeFiles/app.dir/link.txt",
            "ci.bazelrc",
            "lib/TARGETS",
            "Properties/launchSettings.json",
            "Model.tt",
            "config/puma.rb",
            "serverless.ts",
            "Dockerfile-dev",
        ] {
            assert!(executed_by(Path::new(path)).is_some(), "{path}");
        }
        for path in [".unknownrc", ".new-tool/settings", "sub/.hidden/a/b"] {
            assert_eq!(executed_by(Path::new(path)), Some(HIDDEN), "{path}");
            assert_eq!(executed_in(Path::new(path)), Some(HIDDEN), "{path}");
        }
        for path in [
            "src/rules",
            "project/notes.md",
            "src/Main.scala",
            "tools/notes.md",
            "src/app.swift",
            "src/activate.rs",
            "app/puma.rb",
            "notes/profile.md",
            "make.md",
        ] {
            assert_eq!(executed_by(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn a_dotfile_without_its_dot_is_on_the_list_too() {
        for path in [
            "bashrc",
            "bash_profile",
            "zsh/zshrc",
            "zprofile",
            "zshenv",
            "profile",
            "inputrc",
            "tmux.conf",
            "vimrc",
            "nvim/init.lua",
            "nvim/init.vim",
            "emacs/init.el",
            "gdbinit",
            "gitconfig",
            "dot_bashrc",
            "dot_config/fish/config",
        ] {
            assert!(executed_by(Path::new(path)).is_some(), "{path}");
        }
    }

    #[test]
    fn names_are_found_in_any_directory_and_in_any_case() {
        for (path, program) in [
            ("Makefile", Some("make")),
            ("sub/MAKEFILE", Some("make")),
            ("rules.mk", Some("make")),
            ("justfile", Some("just")),
            ("CMakeLists.txt", Some("CMake")),
            ("web/package.json", Some("npm and other package managers")),
            ("tests/conftest.py", Some("Python and its tools")),
            ("crates/x/build.rs", Some("cargo")),
            (".cargo/a/notes.txt", Some("cargo")),
            ("Dockerfile.dev", Some("a container builder")),
            ("vite.config.ts", Some("a JavaScript tool")),
            ("deploy.sh", Some("a shell")),
            ("BUILD", Some("a build tool")),
            ("build/notes.txt", None),
            ("src/main.rs", None),
            ("build.rs.md", None),
            ("makefile.md/notes", None),
            ("src/lib.py", None),
            ("README.md", None),
            ("cargo/notes.txt", None),
        ] {
            assert_eq!(executed_by(Path::new(path)), program, "{path}");
        }
        assert_eq!(
            executed_in(Path::new("x/.GitHub/a")),
            Some("continuous integration")
        );
        assert_eq!(executed_in(Path::new("build")), None);
    }
}
