//! Pages about work that is made of several tasks: workflows and their runs, workers in worktrees, the plan, what is
//! promised, and the roles.

use windlass_coordinator::parallel::WorkerView;
use windlass_coordinator::slash::Block;
use windlass_coordinator::workflows::{RunRow, Standing, WorkflowView};
use windlass_coordinator::{CommitmentFilter, Error};
use windlass_core::id::TaskId;
use windlass_core::role::Role;
use windlass_core::shown::{shown, shown_line};
use windlass_core::status::TaskStatus;
use windlass_core::text::{one_line, prefix, suffix};
use windlass_term::{numbers, strip_controls};

use super::Reader;
use super::tasks::{SHORT_ID, WIDE};
use crate::overlay::{Item, List, Page, PageLine, Target, ViewKind};
use crate::replies;

/// Runs that are listed.
const RUNS: u32 = 100;
/// How many characters of a commit name it.
const SHORT_COMMIT: usize = 12;

impl Reader {
    /// The workflows of this directory, then their runs, the newest first.
    pub(super) fn workflows(&self) -> Result<List, Error> {
        let workflows = self.coordinator.workflows();
        let mut items = vec![heading("Workflows of this directory")];
        let found = workflows.list(&self.workspace);
        items.extend(found.iter().map(|one| self.workflow(one)));
        if found.is_empty() {
            items.push(heading("  none; they are files in .windlass/workflows"));
        }
        items.push(heading("Runs"));
        let runs = workflows.runs(RUNS)?;
        if runs.is_empty() {
            items.push(heading("  none yet"));
        }
        for run in runs {
            items.push(self.run_item(&run)?);
        }
        Ok(List::new(ViewKind::Workflows, "workflows", items))
    }

    fn workflow(&self, one: &WorkflowView) -> Item {
        let about = one.error.as_ref().unwrap_or(&one.description);
        let steps = one.steps.iter().map(|(name, kind)| format!("  {} ({kind})", shown_line(name)));
        let approved = match one.approved {
            true => "its commands are approved",
            false => "its commands are not approved yet: a run asks first",
        };
        let how = format!("start it with: /workflow run {} TITLE", shown_line(&one.name));
        let preview = [how, approved.to_owned(), shown_line(&one.path.display().to_string())];
        Item {
            target: Target::Text,
            line: format!("{:<16} {}", shown_line(&one.name), one_line(&shown(about), WIDE)),
            preview: preview.into_iter().chain(steps).collect(),
        }
    }

    fn run_item(&self, run: &RunRow) -> Result<Item, Error> {
        let id = run.run.to_string();
        let step = run.step.as_deref().map(|step| format!("at {step}")).unwrap_or_default();
        let age = numbers::age(run.created_at, self.coordinator.now());
        let line = format!(
            "{} {:<14} {age:>4}  {:<16} {}",
            suffix(&id, SHORT_ID),
            standing(run.status, run.standing),
            shown_line(&run.workflow),
            shown_line(&step),
        );
        let lines = self.run_lines(run.run)?.into_iter().map(|line| line.text);
        Ok(Item { target: Target::Task(run.run), line, preview: lines.collect() })
    }

    /// One run: its steps, its worktrees and what was merged.
    pub(super) fn run(&self, run: TaskId) -> Result<Page, Error> {
        Ok(Page::new(ViewKind::Run { run }, "run of a workflow", self.run_lines(run)?))
    }

    fn run_lines(&self, run: TaskId) -> Result<Vec<PageLine>, Error> {
        let view = self.coordinator.workflows().status(run)?;
        let detail = view.detail.as_ref();
        let detail = detail.map(|detail| format!(": {}", shown_line(&one_line(detail, WIDE))));
        let title = if view.title.is_empty() { &view.workflow } else { &view.title };
        let mut lines = vec![
            PageLine::of(self.paint.bold(&shown_line(title))),
            PageLine::of(format!(
                "{} {} ({}){}{}",
                shown_line(&view.workflow),
                view.status,
                view.reason,
                remark(view.standing),
                detail.unwrap_or_default()
            )),
        ];
        for step in &view.steps {
            let attempt =
                if step.attempt > 1 { format!(", try {}", step.attempt) } else { String::new() };
            let text = format!(
                "  {:<20} {} ({}{attempt})",
                shown_line(&step.step),
                step.status,
                step.kind_word()
            );
            lines.push(PageLine::heading(text));
            let error = step.error.iter().flat_map(|error| error.lines());
            lines
                .extend(error.map(|line| {
                    PageLine::of(self.paint.red(&format!("    {}", shown_line(line))))
                }));
        }
        for tree in &view.worktrees {
            let port = tree.port.map(|port| format!(", port {port}")).unwrap_or_default();
            let remarks = tree.remarks().into_iter().map(|one| format!(", {}", shown_line(&one)));
            let remarks = format!("{}{}", remark(tree.standing), remarks.collect::<String>());
            let named = if tree.name.is_empty() {
                String::new()
            } else {
                format!("{} ", shown_line(&tree.name))
            };
            lines.push(PageLine::of(format!("worktree {named}{}{remarks}{port}", tree.state)));
            if !tree.branch.is_empty() {
                let (branch, base) = (shown_line(&tree.branch), prefix(&tree.base, SHORT_COMMIT));
                lines.push(PageLine::of(format!("  {branch} from {base}")));
            }
            lines.push(PageLine::of(self.paint.dim(&format!("  {}", shown_line(&tree.path)))));
        }
        let links =
            view.pull_requests.iter().map(|link| format!("pull request {}", shown_line(link)));
        lines.extend(links.map(PageLine::of));
        if view.standing == Standing::LeftOver {
            let how = "windlass workflow prune --dry-run says what can go, and why the rest stays";
            lines.push(PageLine::of(self.paint.dim(how)));
        }
        for merge in &view.merges {
            let (branch, target) = (shown_line(&merge.branch), shown_line(&merge.target));
            lines.push(PageLine::of(format!("merge of {branch} into {target}: {}", merge.state)));
            let files = merge.files.iter().map(|file| format!("  {}", shown_line(file)));
            lines.extend(files.map(PageLine::of));
        }
        Ok(lines)
    }

    /// Workers side by side: what each does, in which worktree, and what it will edit.
    pub(super) fn workers(&self) -> Result<List, Error> {
        let workers = self.coordinator.parallel().workers()?;
        let item = |worker: &WorkerView| {
            let does = worker.activity.clone().unwrap_or_else(|| worker.status.to_string());
            let alive = if worker.alive { "" } else { " (silent)" };
            let claims = worker.claims.iter().map(|file| format!("  edits {}", shown_line(file)));
            let preview = [
                format!("{}  by {}", worker.task, shown_line(&worker.runner)),
                one_line(&shown(&worker.goal), WIDE),
                format!("worktree {}", shown_line(&worker.worktree_path)),
                format!("process {}, last sign of life {}", worker.process_pid, worker.heartbeat()),
            ];
            Item {
                target: Target::Task(worker.task),
                line: format!(
                    "{} {:<9} {:>8}  {}{alive}",
                    suffix(&worker.task.to_string(), SHORT_ID),
                    shown_line(&worker.runner),
                    numbers::known_dollars(worker.cost_usd),
                    one_line(&strip_controls(&does), WIDE),
                ),
                preview: preview.into_iter().chain(claims).collect(),
            }
        };
        let items = workers.iter().map(item).collect();
        Ok(List::new(ViewKind::Workers, "workers in worktrees", items))
    }

    /// How far the plan of this directory is.
    pub(super) fn plan(&self) -> Result<Page, Error> {
        let plans = self.coordinator.plans();
        let blocks = match plans.active(&self.workspace)? {
            Some(row) => plans.status_of(&row)?.blocks(),
            None => vec![Block::Words {
                text: "No plan is active here. `/plans activate NAME` activates one.".to_owned(),
            }],
        };
        let lines = replies::lines(&blocks, self.paint, self.columns);
        Ok(Page::new(ViewKind::Plan, "plan", lines.into_iter().map(PageLine::of).collect()))
    }

    /// What is promised, and how each promise stands.
    pub(super) fn commitments(&self) -> Result<List, Error> {
        let ledger = self.coordinator.commitments();
        let mut items = Vec::new();
        for row in ledger.list(&CommitmentFilter::default())? {
            let found = ledger.get(row.id)?;
            let party = |name: &str, by: &Option<windlass_core::commitment::Party>| {
                by.as_ref().map(|by| format!("{name} {}", shown_line(&by.to_string())))
            };
            let mut preview = vec![format!("{}  {}", row.id, row.state)];
            preview.extend(party("claimed by", &found.claimed_by));
            preview.extend(party("handed in by", &found.submitted_by));
            preview.extend(found.summary.iter().map(|words| shown(words)));
            preview.extend(found.verdict.map(|verdict| format!("verdict: {verdict}")));
            preview.extend(found.verdict_reason.iter().map(|words| shown(words)));
            preview.extend(shown(&found.body).lines().map(str::to_owned));
            let evidence = found.evidence.iter();
            preview.extend(
                evidence.map(|one| format!("  {} {}", one.kind, shown_line(&one.description))),
            );
            let line = format!(
                "{} {:<10} {}",
                suffix(&row.id.to_string(), SHORT_ID),
                row.state.to_string(),
                one_line(&shown(&row.title), WIDE)
            );
            items.push(Item { target: Target::Text, line, preview });
        }
        Ok(List::new(ViewKind::Commitments, "commitments", items))
    }

    /// The roles that can be taken, and which tools each has.
    pub(super) fn roles(&self) -> List {
        let item = |role: Role| {
            let config = role.config();
            Item {
                target: Target::Role(role),
                line: format!("{:<10} {}", role.as_str(), about(role)),
                preview: vec![
                    format!("it has: {}", config.allowed_tools.join(", ")),
                    format!("it never has: {}", config.denied_tools.join(", ")),
                ],
            }
        };
        let items = Role::ALL.iter().map(|role| item(*role)).collect();
        List::new(ViewKind::Roles, "roles", items)
    }
}

/// What a list says of a run: its status, or what that does not say by itself.
const fn standing(status: TaskStatus, standing: Standing) -> &'static str {
    match standing {
        Standing::Stalled | Standing::LeftOver => standing.words(),
        Standing::Working
        | Standing::Queued
        | Standing::Waiting
        | Standing::Paused
        | Standing::Ended => status.as_str(),
    }
}

fn remark(standing: Standing) -> String {
    standing.remark().map(|remark| format!(", {remark}")).unwrap_or_default()
}

const fn about(role: Role) -> &'static str {
    match role {
        Role::Architect => "plans and makes commitments; changes nothing",
        Role::Executor => "carries out a claimed commitment",
        Role::Auditor => "reviews, runs tests, approves or rejects; changes nothing",
    }
}

fn heading(line: &str) -> Item {
    Item { target: Target::Heading, line: line.to_owned(), preview: Vec::new() }
}
