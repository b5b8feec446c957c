//! The files of a project that a text may mean: by the words in it, as modules of a language, and as what a program
//! reads by itself.

/// Programs that run what a file of the project says, and that file.
const MANIFESTS: &[(&str, &str)] = &[
    ("npm", "package.json"),
    ("npx", "package.json"),
    ("pnpm", "package.json"),
    ("yarn", "package.json"),
    ("bun", "package.json"),
    ("deno", "deno.json"),
    ("make", "Makefile"),
    ("make", "makefile"),
    ("make", "GNUmakefile"),
    ("just", "justfile"),
    ("task", "Taskfile.yml"),
    ("rake", "Rakefile"),
    ("uv", "pyproject.toml"),
    ("poetry", "pyproject.toml"),
    ("cargo", "Cargo.toml"),
];

/// The words of a text that may be paths: without quotes, operators and the signs of variables.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |char: char| char.is_whitespace() || "'\"`=;,:|&()<>{}[]$".contains(char);
    text.split(is_end).filter(|word| !word.is_empty())
}

/// The files that a program of this name reads by itself.
pub fn manifests(word: &str) -> impl Iterator<Item = &'static str> {
    let program = word.rsplit('/').next().unwrap_or_default().to_owned();
    MANIFESTS.iter().filter(move |(name, _)| *name == program).map(|(_, manifest)| *manifest)
}

/// The paths that a word may stand for: itself, a module of Python, a module of JavaScript.
pub fn candidates(word: &str) -> Vec<String> {
    let path = word.strip_prefix("/workspace/").unwrap_or(word);
    // `python3 -mserver`
    let path = path.strip_prefix("-m").unwrap_or(path);
    let module = path.replace('.', "/");
    let named = [
        path.to_owned(),
        format!("{module}.py"),
        format!("{module}/__main__.py"),
        format!("{module}/__init__.py"),
        format!("{path}/__main__.py"),
        format!("{path}/package.json"),
    ];
    let loaded = ["js", "mjs", "cjs", "ts"].map(|end| format!("{path}.{end}"));
    let index = ["js", "mjs", "cjs", "ts"].map(|end| format!("{path}/index.{end}"));
    named.into_iter().chain(loaded).chain(index).collect()
}

/// Every file that some program reads by itself.
pub fn all_manifests() -> impl Iterator<Item = &'static str> {
    let first = |index: &usize| {
        MANIFESTS[..*index].iter().all(|(_, earlier)| *earlier != MANIFESTS[*index].1)
    };
    (0..MANIFESTS.len()).filter(first).map(|index| MANIFESTS[index].1)
}
