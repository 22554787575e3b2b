# Shortcuts for the commands that contributors use most; `just` lists them. Each calls cargo or a script, which work without just.

# Pass arguments with spaces on as they are.
set positional-arguments

# List the recipes.
default:
    @just --list

# Run lango, such as `just run run "what files are here?"`; without arguments it opens a chat.
run *arguments:
    cargo run --release -- "$@"

# Run all tests, or those whose name contains a word: `just test approvals`.
test *arguments:
    scripts/test "$@"

# Check the lints as CI does.
lint:
    cargo clippy --workspace --all-targets -- -D warnings

# Format the code.
fmt:
    cargo fmt --all

# Build the documentation of the crates without warnings.
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Check the licences, versions and sources of the dependencies.
deny:
    scripts/deny

# Run everything that must pass before a change lands.
ci:
    .ci/run

# Measure turns through the server; `just bench short` takes half a minute after the build.
bench *arguments:
    scripts/bench "$@"

# Build the binary as releases do.
dist:
    cargo build --profile dist
