# One line each; `just` lists them.
default:
    @just --list

# The whole loop on the built-in model.
demo:
    cargo run --release -- demo

# Every test.
test *args:
    scripts/test {{args}}

# Format and lints.
lint:
    cargo fmt --all --check && cargo clippy --workspace --all-targets -- -D warnings

# Changed snapshots, one by one.
review:
    cargo insta review

# What a change must pass.
ci:
    .ci/run
