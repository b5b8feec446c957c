//! The files of a project that a text may mean: by the words in it, as modules of a language, and as what a program
//! reads by itself.

/// Programs that run what a file of the project says, and that file.
const MANIFESTS: &[(&str, &str)] = &[
    ("npm", "package.json"),
    ("npm", ".npmrc"),
    ("npx", "package.json"),
    ("npx", ".npmrc"),
    ("pnpm", "package.json"),
    ("pnpm", ".npmrc"),
    ("pnpm", "pnpm-workspace.yaml"),
    ("yarn", "package.json"),
    ("yarn", ".yarnrc"),
    ("yarn", ".yarnrc.yml"),
    ("bun", "package.json"),
    ("bun", "bunfig.toml"),
    ("deno", "deno.json"),
    ("deno", "deno.jsonc"),
    ("tsx", "tsconfig.json"),
    ("ts-node", "tsconfig.json"),
    ("make", "Makefile"),
    ("make", "makefile"),
    ("make", "GNUmakefile"),
    ("just", "justfile"),
    ("just", "Justfile"),
    ("just", ".justfile"),
    ("task", "Taskfile.yml"),
    ("task", "Taskfile.yaml"),
    ("rake", "Rakefile"),
    ("rake", "rakefile"),
    ("uv", "pyproject.toml"),
    ("uv", "uv.toml"),
    ("poetry", "pyproject.toml"),
    ("pdm", "pyproject.toml"),
    ("hatch", "pyproject.toml"),
    ("pipenv", "Pipfile"),
    ("pytest", "conftest.py"),
    ("pytest", "pytest.ini"),
    ("pytest", "pyproject.toml"),
    ("tox", "tox.ini"),
    ("nox", "noxfile.py"),
    ("cargo", "Cargo.toml"),
    ("cargo", "build.rs"),
    ("cargo", ".cargo/config"),
    ("cargo", ".cargo/config.toml"),
    ("go", "go.mod"),
    ("go", "go.work"),
    ("mvn", "pom.xml"),
    ("mvn", ".mvn/extensions.xml"),
    ("mvn", ".mvn/jvm.config"),
    ("mvn", ".mvn/maven.config"),
    ("gradle", "build.gradle"),
    ("gradle", "build.gradle.kts"),
    ("gradle", "settings.gradle"),
    ("gradle", "settings.gradle.kts"),
    ("gradle", "gradle.properties"),
    ("bundle", "Gemfile"),
    ("bundle", ".bundle/config"),
    ("composer", "composer.json"),
    ("mix", "mix.exs"),
    ("nix", "flake.nix"),
    ("nix-shell", "shell.nix"),
    ("nix-shell", "default.nix"),
    ("mise", "mise.toml"),
    ("mise", ".mise.toml"),
    ("direnv", ".envrc"),
    ("docker", "docker-compose.yml"),
    ("docker", "docker-compose.yaml"),
    ("docker", "docker-compose.override.yml"),
    ("docker", "docker-compose.override.yaml"),
    ("docker", "compose.yml"),
    ("docker", "compose.yaml"),
    ("docker", "compose.override.yml"),
    ("docker", "compose.override.yaml"),
    ("docker", "Dockerfile"),
    ("docker", ".env"),
    // Python imports them before it begins.
    ("python", "sitecustomize.py"),
    ("python", "usercustomize.py"),
];

/// The words of a text that may be paths: without quotes, operators and the signs of variables.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |char: char| char.is_whitespace() || "'\"`=;,:|&()<>{}[]$".contains(char);
    text.split(is_end).filter(|word| !word.is_empty())
}

/// The files that a program of this name reads by itself.
pub fn manifests(word: &str) -> impl Iterator<Item = &'static str> {
    let program = word.rsplit('/').next().unwrap_or_default();
    let program = match program {
        _ if program.starts_with("python") => "python",
        "docker-compose" | "podman" | "podman-compose" => "docker",
        "mvnw" => "mvn",
        "gradlew" => "gradle",
        "py.test" => "pytest",
        other => other,
    }
    .to_owned();
    MANIFESTS.iter().filter(move |(name, _)| *name == program).map(|(_, manifest)| *manifest)
}

/// The paths that a word may stand for: itself, a module of Python, a module of JavaScript.
pub fn candidates(word: &str) -> Vec<String> {
    let path = word.strip_prefix("/workspace/").unwrap_or(word);
    // `python3 -mserver`, `ruby -r./boot`
    let glued = ["-m", "-r"].iter().find_map(|flag| path.strip_prefix(flag));
    let path = glued.filter(|rest| !rest.is_empty()).unwrap_or(path);
    // A module beside the file that imports it: `from .core import x`.
    let bare = path.trim_start_matches('.');
    let bare = if bare.starts_with('/') { path } else { bare };
    let module = bare.replace('.', "/");
    let named = [
        path.to_owned(),
        format!("{module}.py"),
        format!("{module}/__main__.py"),
        format!("{module}/__init__.py"),
        format!("{path}/__main__.py"),
        format!("{path}/package.json"),
    ];
    const LOADED: [&str; 9] = ["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "rb"];
    let loaded = LOADED.map(|end| format!("{path}.{end}"));
    let index = LOADED.map(|end| format!("{path}/index.{end}"));
    // TypeScript names what it becomes: `import "./b.js"` means `b.ts`.
    let becomes = [("js", "ts"), ("js", "tsx"), ("jsx", "tsx"), ("mjs", "mts"), ("cjs", "cts")];
    let sources = becomes.into_iter().filter_map(|(made, source)| {
        Some(format!("{}.{source}", path.strip_suffix(made)?.strip_suffix('.')?))
    });
    named.into_iter().chain(loaded).chain(index).chain(sources).collect()
}

/// Every file that some program reads by itself.
pub fn all_manifests() -> impl Iterator<Item = &'static str> {
    let first = |index: &usize| {
        MANIFESTS[..*index].iter().all(|(_, earlier)| *earlier != MANIFESTS[*index].1)
    };
    (0..MANIFESTS.len()).filter(first).map(|index| MANIFESTS[index].1)
}
