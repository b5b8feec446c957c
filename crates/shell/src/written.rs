//! Files that a text writes before it may run them.

use std::collections::BTreeMap;

use super::classify::opaque;
use super::invocation::Invocation;
use super::paths;
use super::state::Arg;
use super::syntax::Append;
use super::table::Program;
use super::walk::Walk;
use windlass_core::policy::class::Assessment;

/// What a written file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    Known(String),
    /// A copy of this file, or a link to it.
    CopyOf(String),
    Unknown,
}

/// The files written so far, by absolute path.
#[derive(Default)]
pub(super) struct WrittenFiles {
    files: BTreeMap<String, Contents>,
    /// Directories that were filled with what came from elsewhere.
    fetched: Vec<String>,
    /// A file from elsewhere that programs of the project run without naming it.
    fetched_code: Option<String>,
}

impl WrittenFiles {
    /// Remembers that a file is written, with text that is not known unless it was before.
    pub(super) fn mark(&mut self, path: String) {
        self.files.entry(path).or_insert(Contents::Unknown);
    }

    /// Remembers what a command writes into a file.
    pub(super) fn write(&mut self, path: String, append: Append, text: Option<&str>) {
        let new = match (append, self.files.remove(&path), text) {
            (Append::No, _, Some(text)) => Contents::Known(text.to_owned()),
            (Append::Yes, Some(Contents::Known(old)), Some(text)) => {
                Contents::Known(format!("{old}\n{text}"))
            }
            (Append::No, _, None) | (Append::Yes, ..) => Contents::Unknown,
        };
        self.files.insert(path, new);
    }

    /// Remembers that a file is a copy of another, or another name of it.
    pub(super) fn copy(&mut self, from: &str, to: String) {
        let contents = match self.files.get(from) {
            Some(contents) => contents.clone(),
            None if self.is_fetched(from) => Contents::Unknown,
            None => Contents::CopyOf(from.to_owned()),
        };
        // A file that came back to its own name is itself again.
        if contents != Contents::CopyOf(to.clone()) {
            self.files.insert(to, contents);
        }
    }

    /// The files that a file of this name, in whatever directory, is a copy of.
    pub(super) fn copies_named(&self, name: &str) -> Vec<String> {
        let copies = self.files.iter().filter_map(|(path, contents)| match contents {
            Contents::CopyOf(original) if path.rsplit('/').next() == Some(name) => Some(original),
            Contents::CopyOf(_) | Contents::Known(_) | Contents::Unknown => None,
        });
        copies.cloned().collect()
    }

    /// Remembers that a directory holds files from elsewhere.
    pub(super) fn fetch_into(&mut self, directory: String) {
        self.fetched.push(directory);
    }

    fn is_fetched(&self, path: &str) -> bool {
        self.fetched.iter().any(|directory| is_below(path, directory))
    }

    /// What the first of these files holds that was written.
    pub(super) fn find(&self, paths: &[Option<String>]) -> Option<&Contents> {
        let mut paths = paths.iter().flatten();
        paths.find_map(|path| {
            let unknown = || self.is_fetched(path).then_some(&Contents::Unknown);
            self.files.get(path).or_else(unknown)
        })
    }
}

fn is_below(path: &str, directory: &str) -> bool {
    path.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
}

/// Whether programs of a project run a file of this name by themselves.
fn is_code(path: &str) -> bool {
    const NAMES: &[&str] =
        &["Makefile", "makefile", "GNUmakefile", "Dockerfile", "Rakefile", "justfile"];
    const ENDINGS: &[&str] = &[
        "py", "js", "mjs", "cjs", "ts", "jsx", "tsx", "rs", "go", "rb", "c", "h", "cc", "cpp",
        "java", "kt", "gradle", "kts", "mk", "cmake", "toml", "php", "pl", "sh",
    ];
    let name = path.rsplit('/').next().unwrap_or_default();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    NAMES.contains(&name)
        || matches!(name, "package.json" | "CMakeLists.txt" | "setup.cfg")
        || ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// A program that builds, tests or runs what this text has fetched: `git clone a && make -C a`.
pub(super) fn run_fetched(walk: &Walk<'_>, call: &Invocation) -> Option<Assessment> {
    if matches!(call.program, "git" | "hub" | "gh" | "tar" | "gtar" | "bsdtar" | "unzip" | "docker")
    {
        return None;
    }
    let fetched = || walk.written.fetched.iter().filter(|path| **path != walk.context.workspace);
    let inside = |path: &String| fetched().any(|root| path == root || is_below(path, root));
    let here = walk.state.directories.iter().flatten().any(inside);
    let values = call.options.iter().filter_map(|option| option.value);
    let words = call.operands.iter().map(|arg| &*arg.text).chain(values);
    let mut named = words.flat_map(|word| walk.paths().resolve(word)).flatten();
    if here || named.any(|path| inside(&path)) {
        return Some(opaque("runs code that was fetched just before"));
    }
    let file = walk.written.fetched_code.as_ref()?;
    let name = file.rsplit('/').next().unwrap_or_default();
    Some(opaque(format!("may run `{name}`, which was fetched just before")))
}

/// Remembers a file that a program of the network wrote.
pub(super) fn mark_fetched(walk: &mut Walk<'_>, file: &str) {
    let paths = walk.paths().resolve(file).into_iter().flatten();
    let code =
        paths.filter(|path| is_code(path)).find(|path| is_below(path, &walk.context.workspace));
    walk.written.fetched_code = code.or(walk.written.fetched_code.take());
}

/// Programs that print or write what the network answers.
pub(super) const FETCHERS: &[&str] =
    &["curl", "wget", "wget2", "aria2c", "axel", "http", "https", "xh"];

/// Remembers the files that a program writes, copies, links or fetches.
pub(super) fn remember(walk: &mut Walk<'_>, entry: &Program, call: &Invocation) {
    match call.program {
        "curl" | "wget" | "wget2" | "aria2c" | "axel" | "http" | "https" | "xh" | "fetch"
        | "tee" | "sponge" | "dd" => {
            let names = entry.outputs.split_whitespace();
            let files = names.flat_map(|name| call.values(name)).map(str::to_owned);
            let operands = call.operands.iter().map(|arg| arg.text.clone());
            let operands = operands.map(|text| match text.strip_prefix("of=") {
                Some(file) => file.to_owned(),
                // Without another name a file is called as in its address.
                None => text.rsplit('/').next().unwrap_or_default().to_owned(),
            });
            let fetches = FETCHERS.contains(&call.program);
            for file in files.chain(operands).collect::<Vec<_>>() {
                if fetches && !call.has("-O-|-qO-") {
                    mark_fetched(walk, &file);
                }
                walk.mark_written(&Arg::literal(file));
            }
            let directories = call.values("-P|--directory-prefix|--output-dir|-d|--dir");
            for directory in directories.map(str::to_owned).collect::<Vec<_>>() {
                fetch_into(walk, &directory);
            }
        }
        "cp" | "gcp" | "ln" | "mv" | "gmv" | "install" | "link" | "rsync" | "scp" => {
            remember_copies(walk, call);
        }
        "gh" | "glab" if call.operands.iter().any(|arg| arg.text == "download") => {
            let directory = call.values("-D|--dir").next().unwrap_or(".").to_owned();
            fetch_into(walk, &directory);
        }
        "git" | "hub" if call.word(0) == Some("clone") => {
            // Values of options may be among the operands: `--depth 1`.
            let words: Vec<&str> = call.operands.iter().skip(1).map(|arg| &*arg.text).collect();
            let at = words.iter().position(|word| word.contains(['/', ':'])).unwrap_or(0);
            let address = words.get(at).unwrap_or(&"").trim_end_matches('/');
            let name = address.rsplit(['/', ':']).next().unwrap_or_default();
            let directory = words.get(at + 1).copied().unwrap_or(name.trim_end_matches(".git"));
            fetch_into(walk, directory);
        }
        // What an address of its own brings is not the project's.
        "git" | "hub"
            if call.word(0) == Some("pull")
                && call.word(1).is_some_and(|from| from.contains("://") || from.contains('@')) =>
        {
            fetch_into(walk, ".");
        }
        "tar" | "gtar" | "bsdtar" | "unzip" | "cpio" | "7z" => {
            // An archive that this text wrote, or that comes from a pipe, is from elsewhere.
            let named = call
                .args
                .iter()
                .any(|arg| walk.written.find(&walk.paths().resolve(&arg.text)).is_some());
            if named || walk.state.input == super::state::Input::Pipe {
                let directory = call.values("-C|--directory|-d").next().unwrap_or(".").to_owned();
                fetch_into(walk, &directory);
            }
        }
        _ => {}
    }
}

fn fetch_into(walk: &mut Walk<'_>, directory: &str) {
    for path in walk.paths().resolve(directory).into_iter().flatten() {
        walk.written.fetch_into(path);
    }
}

/// `cp /bin/rm x`: from now on `x` is `rm`.
fn remember_copies(walk: &mut Walk<'_>, call: &Invocation) {
    let into = call.values("-t|--target-directory").next();
    let (sources, target) = match (into, call.operands.split_last()) {
        (Some(into), _) => (&call.operands[..], into),
        (None, Some((last, sources))) if !sources.is_empty() => (sources, &*last.text),
        // `ln -s /bin/rm` makes a link of that name here.
        (None, _) => (&call.operands[..], "."),
    };
    for source in sources {
        let Some(from) = walk.paths().resolve(&source.text).into_iter().next().flatten() else {
            continue;
        };
        let base = from.rsplit('/').next().unwrap_or_default();
        // Whether the target is a directory is not looked up: both are remembered.
        let inside = paths::join(target, base);
        let targets = [target, &*inside].map(|path| walk.paths().resolve(path));
        for to in targets.into_iter().flatten().flatten() {
            walk.written.copy(&from, to);
        }
    }
}
