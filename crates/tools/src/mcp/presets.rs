//! Servers that many people want, ready to be named (WF-036, WF-037).

use std::collections::BTreeMap;

use windlass_core::layout::WORKSPACE;

/// A server by one word.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    command: &'static str,
    args: &'static [&'static str],
    /// Its arguments where none are given.
    default_args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
}

/// A preset with what the person added.
pub(super) struct PresetCommand {
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, String>,
}

/// All of them.
pub const PRESETS: [Preset; 3] = [
    Preset {
        name: "filesystem",
        about: "files of the directories given as `args`; the workspace where none are",
        command: "npx",
        args: &["-y", "@modelcontextprotocol/server-filesystem"],
        default_args: &[WORKSPACE],
        env: &[],
    },
    Preset {
        name: "puppeteer",
        about: "a browser of its own",
        command: "npx",
        args: &["-y", "@modelcontextprotocol/server-puppeteer"],
        default_args: &[],
        env: &[],
    },
    Preset {
        name: "github",
        about: "GitHub, with the token in GITHUB_PERSONAL_ACCESS_TOKEN",
        command: "npx",
        args: &["-y", "@modelcontextprotocol/server-github"],
        default_args: &[],
        env: &[("GITHUB_PERSONAL_ACCESS_TOKEN", "${GITHUB_PERSONAL_ACCESS_TOKEN}")],
    },
];

pub(super) fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

impl Preset {
    /// The command line it stands for.
    pub fn command_line(&self) -> String {
        let words = [self.command].into_iter().chain(self.args.iter().copied());
        words.chain(self.default_args.iter().copied()).collect::<Vec<_>>().join(" ")
    }

    pub(super) fn command(&self, args: &[String], env: &BTreeMap<String, String>) -> PresetCommand {
        let own = self.args.iter().map(|&arg| arg.to_owned());
        let args: Vec<String> = match args {
            [] => own.chain(self.default_args.iter().map(|&arg| arg.to_owned())).collect(),
            given => own.chain(given.iter().cloned()).collect(),
        };
        let mut all: BTreeMap<String, String> =
            self.env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        all.extend(env.clone());
        PresetCommand { command: self.command.to_owned(), args, env: all }
    }
}
