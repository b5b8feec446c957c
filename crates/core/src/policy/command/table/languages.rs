//! Package managers and toolchains of one language: cargo, go, gem, rustup and their like.

use super::{Files, Program, row};
use crate::policy::class::Class;
use crate::policy::command::invocation::Style;

const fn manager(
    names: &'static [&'static str],
    values: &'static str,
    rows: &'static [super::Row],
) -> Program {
    Program { names, values, outputs: "", style: Style::Bundled, files: Files::None, rows }
}

const fn one_dash(
    names: &'static [&'static str],
    values: &'static str,
    rows: &'static [super::Row],
) -> Program {
    Program { names, values, outputs: "", style: Style::OneDash, files: Files::None, rows }
}

pub(super) const PROGRAMS: &[Program] = &[
    manager(
        &["cargo"],
        "--manifest-path --config -p --package --features -F --target --target-dir -j --jobs --bin --example --test --bench --profile -Z --color --message-format --exclude -C --registry --token --version --vers --path --git --branch --tag --rev --root --index",
        &[
            row(
                "",
                Class::Build,
                "builds or installs",
                &[
                    "cargo build --release",
                    "cargo +nightly build",
                    "cargo add serde",
                    "cargo rm serde",
                    "cargo update",
                    "cargo run",
                    "cargo doc",
                    "cargo fetch",
                    "cargo vendor",
                ],
                &["cargo test", "cargo publish", "cargo metadata", "rm serde"],
            ),
            row(
                "tree|metadata|search|info|version|help|locate-project|pkgid|verify-project|read-manifest|audit|deny|outdated|geiger|bloat|about|license|msrv|machete|udeps|config|report",
                Class::Read,
                "looks at the project",
                &[
                    "cargo tree",
                    "cargo metadata --format-version 1",
                    "cargo --version",
                    "cargo search x",
                ],
                &["cargo add x"],
            ),
            row(
                ".",
                Class::Read,
                "shows help or a version",
                &["cargo", "cargo -V"],
                &["cargo run"],
            ),
            row(
                "*|+* tree|metadata|version",
                Class::Read,
                "looks at the project",
                &["cargo +stable tree"],
                &["cargo +stable build"],
            ),
            row(
                "test|t|check|c|clippy|nextest|bench|fmt|miri|llvm-cov|tarpaulin|mutants|hack|semver-checks|insta|expand|fuzz|careful|spellcheck|sort|doc-test",
                Class::Test,
                "runs tests or checks",
                &[
                    "cargo test",
                    "cargo clippy --all-targets -- -D warnings",
                    "cargo check",
                    "cargo fmt --check",
                    "cargo nextest run",
                    "cargo bench",
                ],
                &["cargo build", "cargo publish"],
            ),
            row(
                "+* test|check|clippy|nextest|bench|fmt|miri",
                Class::Test,
                "runs tests or checks",
                &["cargo +nightly test"],
                &["cargo +nightly build"],
            ),
            row(
                "clean",
                Class::Build,
                "removes build results, which can be built again",
                &["cargo clean"],
                &["rm -r target"],
            ),
            row(
                "install|uninstall|binstall",
                Class::Build,
                "installs programs for the user",
                &["cargo install ripgrep"],
                &["cargo test"],
            ),
            row(
                "publish|login|logout|owner|yank|release|smart-release|workspaces|dist",
                Class::Publish,
                "changes the registry",
                &[
                    "cargo publish",
                    "cargo publish -p x --no-verify",
                    "cargo login",
                    "cargo yank --vers 1 x",
                ],
                &["cargo publish --dry-run", "cargo package"],
            ),
            row(
                "+* publish|yank|owner|release",
                Class::Publish,
                "changes the registry",
                &["cargo +stable publish"],
                &["cargo +stable test"],
            ),
            row(
                "publish -n|--dry-run",
                Class::Test,
                "checks what would be published",
                &["cargo publish --dry-run"],
                &["cargo publish"],
            ),
            row(
                "--config",
                Class::Opaque,
                "obeys configuration that can name programs to run",
                &["cargo --config build.rustc-wrapper='./x' build"],
                &["cargo build"],
            ),
            row(
                "watch",
                Class::LocalCommand,
                "runs commands at every change",
                &["cargo watch -x test"],
                &["cargo test"],
            ),
        ],
    ),
    manager(
        &[
            "gem", "bundle", "bundler", "composer", "cpan", "cpanm", "luarocks", "opam", "nuget",
            "dotnet", "swift", "pod", "carthage", "mix", "rebar3", "dart", "flutter", "pub",
            "stack", "cabal", "raco", "nimble", "shards", "dub", "vcpkg", "conan", "spack",
        ],
        "-C --chdir -d --working-dir --gemfile -c --configuration -o --output -r --runtime -f --framework --version -v --source -k --api-key -p --package",
        &[
            row(
                "",
                Class::Build,
                "installs or builds",
                &[
                    "bundle install",
                    "gem install x",
                    "composer install",
                    "dotnet build",
                    "mix deps.get",
                    "swift build",
                ],
                &["gem push a.gem", "dotnet test", "gem list"],
            ),
            row(
                "list|show|info|search|outdated|env|help|which|licenses|tree|version|deps|doctor|--version|check|specification|query|dependency",
                Class::Read,
                "looks at packages",
                &["gem list", "bundle show x", "composer show"],
                &["gem install x"],
            ),
            row(
                "test|lint|analyze|format|credo|dialyzer|validate|audit|vstest",
                Class::Test,
                "runs tests or checks",
                &["dotnet test", "mix test", "swift test", "flutter analyze"],
                &["dotnet build"],
            ),
            row(
                "push|publish|upload|hex.publish|lib|trunk|release",
                Class::Publish,
                "changes the registry",
                &[
                    "gem push a.gem",
                    "dart pub publish",
                    "mix hex.publish",
                    "pod trunk push a",
                    "cabal upload a",
                ],
                &["gem build a.gemspec"],
            ),
            row(
                "nuget|pub|package push|publish|delete",
                Class::Publish,
                "changes the registry",
                &["dotnet nuget push a.nupkg", "flutter pub publish"],
                &["dotnet nuget list source"],
            ),
            row(
                "yank|delete",
                Class::Destructive,
                "removes a published package",
                &["gem yank x -v 1"],
                &["gem list"],
            ),
            row(
                "exec|run",
                Class::LocalCommand,
                "runs a command of the project's environment",
                &["bundle exec ./x", "dotnet run"],
                &["bundle install"],
            ),
        ],
    ),
    one_dash(
        &["go"],
        "-o -C -run -count -timeout -tags -ldflags -bench -coverprofile -exec -toolexec -mod -modfile -overlay -cpuprofile",
        &[
            row(
                "",
                Class::Build,
                "builds or installs",
                &[
                    "go build ./...",
                    "go mod tidy",
                    "go get x",
                    "go install ./cmd/x",
                    "go generate ./...",
                ],
                &["go test ./...", "go version", "go list ./..."],
            ),
            row(
                "version|env|list|doc|help|bug|tool",
                Class::Read,
                "looks at the project",
                &["go version", "go env GOPATH", "go list -m all"],
                &["go env -w A=b"],
            ),
            row(
                "env -w|-u",
                Class::Destructive,
                "changes configuration outside the workspace",
                &["go env -w GOFLAGS=-mod=mod"],
                &["go env"],
            ),
            row(
                "test|vet|fmt",
                Class::Test,
                "runs tests or checks",
                &["go test ./... -run X", "go vet ./...", "go fmt ./..."],
                &["go build"],
            ),
            row(
                "run",
                Class::LocalCommand,
                "runs a program of the workspace",
                &["go run ./cmd/x", "go run main.go"],
                &["go build"],
            ),
            row(
                "clean",
                Class::Build,
                "removes build results, which can be built again",
                &["go clean -cache"],
                &["rm -r bin"],
            ),
            row(
                "-exec|-toolexec",
                Class::Opaque,
                "runs the program it is told to",
                &["go test -exec ./x ./...", "go build -toolexec=./x"],
                &["go test ./..."],
            ),
        ],
    ),
    manager(
        &[
            "rustup", "nvm", "fnm", "volta", "pyenv", "rbenv", "asdf", "mise", "rtx", "sdk",
            "jenv", "nodenv", "goenv", "corepack", "n", "proto",
        ],
        "--toolchain --profile",
        &[
            row(
                "",
                Class::Build,
                "installs or chooses toolchains",
                &["rustup update", "nvm use 20", "rustup component add clippy", "corepack enable"],
                &["rustup show", "nvm ls"],
            ),
            row(
                "show|list|ls|which|version|versions|current|check|doc|help|whence|root|--version|outdated|target|component|toolchain|where|ls-remote|alias",
                Class::Read,
                "looks at toolchains",
                &["rustup show", "nvm ls", "pyenv versions"],
                &["rustup update"],
            ),
            row(
                "target|component|toolchain|alias +",
                Class::Build,
                "installs or chooses toolchains",
                &["rustup target add wasm32-wasip1", "rustup toolchain install nightly"],
                &["rustup target"],
            ),
            row(
                "target|component|toolchain list",
                Class::Read,
                "looks at toolchains",
                &["rustup toolchain list"],
                &["rustup toolchain install nightly"],
            ),
            row(
                "uninstall|self|remove",
                Class::Destructive,
                "removes a toolchain",
                &["rustup self uninstall", "pyenv uninstall 3.9"],
                &["rustup show"],
            ),
            row(
                "toolchain|target|component uninstall|remove",
                Class::Destructive,
                "removes a toolchain",
                &["rustup toolchain uninstall nightly"],
                &["rustup toolchain list"],
            ),
            row(
                "run|exec",
                Class::LocalCommand,
                "runs a command of a toolchain",
                &["rustup run nightly ./x", "mise exec -- ./x"],
                &["rustup update"],
            ),
        ],
    ),
    manager(
        &["twine"],
        "-r --repository -u -p",
        &[
            row(
                "",
                Class::Publish,
                "changes the registry",
                &["twine upload dist/*"],
                &["twine check dist/*"],
            ),
            row(
                "check",
                Class::Test,
                "checks packages",
                &["twine check dist/*"],
                &["twine upload dist/*"],
            ),
        ],
    ),
];
