//! A skill as it would be written: its text, and the eval case that it has to pass.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_coordinator::skill_proposals::{EvidenceKind, Proposal};
use windlass_core::message::{Message, Prelude};
use windlass_core::text::one_line;
use windlass_model::{Model, Options};
use windlass_skills::regular;

/// What the fast model is asked.
const PROMPT: &str = include_str!("prompt.md");
/// The longest draft.
const MAX_OUTPUT_TOKENS: u32 = 4_000;
/// Files of the project that an eval case begins with.
const MAX_FILES: usize = 20;
const MAX_FILE_BYTES: u64 = 256 * 1024;

/// A skill that is not written yet.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProposalDraft {
    /// What its `SKILL.md` says.
    pub text: String,
    /// What the agent of the eval case is asked to do.
    task: String,
    /// Decides by its exit code.
    grader: String,
    /// Files of the project that the case needs.
    needs: Vec<String>,
}

/// What a model writes.
#[derive(Deserialize)]
struct ModelDraft {
    description: String,
    instructions: String,
    task: String,
    grader: String,
}

impl ProposalDraft {
    /// Written from what tasks had in common. Only a command that failed and one that worked in its place can be checked
    /// without a person's or a model's judgement.
    pub fn from_evidence(proposal: &Proposal) -> Result<Self, String> {
        let first = proposal.evidence.first().ok_or("the proposal has no evidence")?;
        let Some(then) = first.detail.then.as_ref().filter(|_| first.kind == EvidenceKind::Failure)
        else {
            return Err("what is common here cannot be checked by a program; set `policy.skill_proposals = \
                        \"generate\"` to have the fast model write a skill with a case for it"
                .to_owned());
        };
        let failed = &first.what;
        let description =
            format!("Use before you run `{failed}` in this project: `{then}` is what works.");
        let mut body = format!("In this project `{failed}` does not work");
        if let Some(said) = &first.detail.said {
            let _ = write!(body, " ({})", one_line(said, 200));
        }
        let _ = write!(body, ".\n\n1. Do not run `{failed}`.\n2. Run `{then}` instead.\n");
        let others: Vec<String> =
            proposal.evidence.iter().skip(1).map(|one| format!("- {}\n", one.words())).collect();
        if !others.is_empty() {
            let _ =
                write!(body, "\nTasks that did so also had this in common:\n\n{}", others.concat());
        }
        Ok(Self {
            text: skill_text(&proposal.name, &description, &body),
            task: proposal.goal.clone(),
            grader: grader(failed, then),
            needs: named_files(proposal),
        })
    }

    /// Written by a model, from the same evidence.
    pub async fn by_model(model: &dyn Model, proposal: &Proposal) -> Result<Self, String> {
        let prelude = Prelude { system: PROMPT.to_owned(), tools: Vec::new() };
        let mut transcript = model.transcript(&prelude);
        let findings: Vec<String> =
            proposal.evidence.iter().map(|one| format!("- {}\n", one.words())).collect();
        let asked = format!("Goal of the latest task: {}\n\n{}", proposal.goal, findings.concat());
        transcript.push(&Message::user(asked));
        let options =
            Options { temperature: None, max_output_tokens: Some(MAX_OUTPUT_TOKENS), schema: None };
        let reply = model.reply(&transcript, &options, &mut |_| {}).await;
        let text = reply.map_err(|error| error.to_string())?.text;
        let object = match (text.find('{'), text.rfind('}')) {
            (Some(from), Some(to)) if from < to => &text[from..=to],
            _ => return Err("it is not a JSON object".to_owned()),
        };
        let written: ModelDraft =
            serde_json::from_str(object).map_err(|error| error.to_string())?;
        Ok(Self {
            text: skill_text(&proposal.name, &written.description, &written.instructions),
            task: written.task,
            grader: written.grader,
            needs: named_files(proposal),
        })
    }

    /// A draft that was kept.
    pub fn read(file: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(file).ok()?).ok()
    }

    /// Keeps it until it is accepted.
    pub fn keep(&self, file: &Path) -> io::Result<()> {
        fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
        fs::write(file, json!(self).to_string())
    }

    /// The files that are written, by their paths in the skill's folder.
    pub fn files(&self) -> [(&'static str, String); 3] {
        [
            ("SKILL.md", self.text.clone()),
            ("evals/case-1/task.md", format!("{}\n", self.task.trim())),
            ("evals/case-1/grader.sh", self.grader.clone()),
        ]
    }

    /// The files of the project that are copied for its case.
    pub fn copies(&self, project: &Path) -> Vec<String> {
        let is_small = |name: &&String| {
            let path = project.join(name);
            regular::lies_in(project, &path).unwrap_or(false)
                && fs::symlink_metadata(path)
                    .is_ok_and(|file| file.is_file() && file.len() <= MAX_FILE_BYTES)
        };
        self.needs.iter().filter(is_small).cloned().collect()
    }

    /// Writes the skill's folder.
    pub fn write(&self, folder: &Path, project: &Path) -> io::Result<()> {
        let case = folder.join("evals/case-1");
        fs::create_dir_all(case.join("hidden"))?;
        fs::create_dir_all(case.join("work"))?;
        for (path, text) in self.files() {
            fs::write(folder.join(path), text)?;
        }
        for name in self.copies(project) {
            let target = case.join("work").join(&name);
            fs::create_dir_all(target.parent().unwrap_or(&case))?;
            fs::copy(project.join(name), target)?;
        }
        Ok(())
    }
}

fn skill_text(name: &str, description: &str, body: &str) -> String {
    let description = json!(one_line(description, 900));
    format!(
        "---\nname: {name}\ndescription: {description}\nside-effects: none\n---\n\n# {name}\n\n{}\n",
        body.trim()
    )
}

/// Passes when the trace has the command that works and not the one that does not.
fn grader(failed: &str, then: &str) -> String {
    let quoted = |command: &str| format!("'{}'", json!(command).to_string().replace('\'', "'\\''"));
    format!(
        "# Passes when the agent took the short way. The trace has one event a line.\n\
         calls=$(grep '\"tool_call\"' \"$WINDLASS_EVAL_TRACE\")\n\
         case $calls in *{}*) echo 'it ran what does not work here'; exit 1;; esac\n\
         case $calls in *{}*) exit 0;; esac\n\
         echo 'it did not run what works here'\n\
         exit 1\n",
        quoted(failed),
        quoted(then),
    )
}

/// The project's files that the evidence names: in commands, and as files.
fn named_files(proposal: &Proposal) -> Vec<String> {
    let texts =
        proposal.evidence.iter().flat_map(|one| [Some(&one.what), one.detail.then.as_ref()]);
    let words = texts.flatten().flat_map(|text| text.split_whitespace());
    let is_inside = |path: &&str| {
        let mut parts = Path::new(path).components();
        !path.is_empty()
            && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
    };
    let mut files: Vec<String> = words.filter(is_inside).map(str::to_owned).collect();
    files.sort();
    files.dedup();
    files.truncate(MAX_FILES);
    files
}

#[cfg(test)]
mod tests {
    use windlass_coordinator::skill_proposals::{Detail, Finding, ProposalStatus};

    use super::*;

    fn proposal(kind: EvidenceKind) -> Proposal {
        let detail =
            Detail { then: Some("sh run-tests.sh 'all'".into()), said: Some("no rule".into()) };
        Proposal {
            number: 1,
            project: "/p".into(),
            name: "learned-sh-run-tests".into(),
            status: ProposalStatus::Open,
            note: String::new(),
            made_at: jiff::Timestamp::UNIX_EPOCH,
            evidence: vec![Finding { kind, what: "make test".into(), detail, tasks: Vec::new() }],
            goal: "run the tests".into(),
        }
    }

    /// MS-166, MS-168
    #[test]
    fn a_draft_has_instructions_and_a_case_that_checks_them() {
        let draft = ProposalDraft::from_evidence(&proposal(EvidenceKind::Failure)).unwrap();
        insta::assert_snapshot!(format!("{}\n---\n{}", draft.text, draft.grader), @r#"
        ---
        name: learned-sh-run-tests
        description: "Use before you run `make test` in this project: `sh run-tests.sh 'all'` is what works."
        side-effects: none
        ---

        # learned-sh-run-tests

        In this project `make test` does not work (no rule).

        1. Do not run `make test`.
        2. Run `sh run-tests.sh 'all'` instead.

        ---
        # Passes when the agent took the short way. The trace has one event a line.
        calls=$(grep '"tool_call"' "$WINDLASS_EVAL_TRACE")
        case $calls in *'"make test"'*) echo 'it ran what does not work here'; exit 1;; esac
        case $calls in *'"sh run-tests.sh '\''all'\''"'*) exit 0;; esac
        echo 'it did not run what works here'
        exit 1
        "#);
        assert!(windlass_skills::parse_markdown(&draft.text, "learned-sh-run-tests").is_ok());
        assert_eq!(draft.needs, ["'all'", "make", "run-tests.sh", "sh", "test"]);
    }

    #[test]
    fn what_no_program_can_check_is_not_drafted_without_a_model() {
        for kind in [EvidenceKind::Correction, EvidenceKind::Command, EvidenceKind::File] {
            let why = ProposalDraft::from_evidence(&proposal(kind)).unwrap_err();
            assert!(why.contains("policy.skill_proposals"), "{why}");
        }
    }
}
