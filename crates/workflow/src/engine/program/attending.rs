//! While a program works: its reports go into the journal, answers to the program.

use std::path::Path;

use tokio::sync::mpsc;
use windlass_core::event::{Event, QuestionClosed, RunnerReported};
use windlass_core::id::QuestionId;
use windlass_core::question::{Question, QuestionKind};
use windlass_core::status::StatusReason;

use super::{LateAnswer, Program};
use crate::engine::{Error, question};
use crate::runner::{Asks, Job, Link, Order, REPORTS, Report, RunnerQuestion, RunnerResult};
use crate::state::QuestionProgress;

/// Answers that may wait for a program.
const ORDERS: usize = 32;

/// What a program asks, and the answers that it did not get before a restart.
struct Questions {
    asked: Vec<(QuestionId, RunnerQuestion)>,
    late: Vec<LateAnswer>,
}

impl Program<'_> {
    /// Passes reports into the journal and answers to the program, until it has ended.
    pub(super) async fn attend(
        &self,
        job: Job,
        sandbox: &dyn windlass_sandbox::Sandbox,
        late: Vec<LateAnswer>,
    ) -> Result<RunnerResult, Error> {
        let (reports, mut received) = mpsc::channel(REPORTS);
        let (orders, order_list) = mpsc::channel(ORDERS);
        let running = self.runner.run(job, sandbox, Link { reports, orders: order_list });
        tokio::pin!(running);
        let mut mail = self.attempt.engine.tree.store().mailbox().changes();
        let mut open = Questions { asked: Vec::new(), late };
        let mut is_stopping = false;
        loop {
            let mut batch = Vec::new();
            tokio::select! {
                biased;
                count = received.recv_many(&mut batch, REPORTS) => {
                    if count > 0 {
                        self.note_reports(batch, &mut open, &orders).await?;
                    }
                    if count == 0 {
                        return Ok(running.await);
                    }
                }
                ended = &mut running => {
                    received.close();
                    while let Some(report) = received.recv().await {
                        batch.push(report);
                    }
                    self.note_reports(batch, &mut open, &orders).await?;
                    return Ok(ended);
                }
                changed = mail.changed() => changed?,
                () = self.attempt.halt.cancelled(), if !is_stopping => {
                    is_stopping = true;
                    // A full channel means that it has not read its last orders; it ends by its own limits then.
                    let _ = orders.try_send(Order::Stop);
                }
            }
            if !is_stopping && self.is_over_budget().await {
                is_stopping = true;
                let _ = orders.try_send(Order::Stop);
            }
            self.journal.drain(self.now()).await?;
            self.pass_answers(&orders, &mut open).await?;
        }
    }

    async fn pass_answers(
        &self,
        orders: &mpsc::Sender<Order>,
        open: &mut Questions,
    ) -> Result<(), Error> {
        let mut given = Vec::new();
        for (id, asked) in &open.asked {
            if let Some(text) = self.journal.answer_to(*id).await {
                given.push(*id);
                // It may have ended meanwhile.
                let _ = orders.send(Order::Answer { question: asked.id.clone(), text }).await;
            }
        }
        open.asked.retain(|(id, _)| !given.contains(id));
        if !given.is_empty() {
            // A later process does not give them again.
            let events = given.into_iter().map(delivered).collect();
            self.journal.commit(self.now(), events).await?;
            self.unblock().await?;
        }
        Ok(())
    }

    async fn note_reports(
        &self,
        reports: Vec<Report>,
        open: &mut Questions,
        orders: &mpsc::Sender<Order>,
    ) -> Result<(), Error> {
        let mut printed = String::new();
        let mut events = Vec::new();
        let (mut new, mut gone, mut used) = (Vec::new(), Vec::new(), None);
        let mut note =
            |reported: RunnerReported| events.push(Event::RunnerReported(Box::new(reported)));
        for report in reports {
            match report {
                Report::Output(text) => printed.push_str(&text),
                Report::Session(session) => {
                    note(RunnerReported { session: Some(session), ..RunnerReported::default() });
                }
                Report::Activity(activity) => {
                    let activity = Some(activity.to_string());
                    note(RunnerReported { activity, ..RunnerReported::default() });
                }
                Report::Question(asked) => new.push(asked),
                Report::Withdrawn(id) => {
                    new.retain(|asked| asked.id != id);
                    gone.extend(open.asked.extract_if(.., |(_, asked)| asked.id == id));
                }
                Report::Replayed(fingerprint) => {
                    let is_it = |late: &LateAnswer| late.given.fingerprint == fingerprint;
                    if let Some(at) = open.late.iter().position(is_it) {
                        let question = Some(open.late.remove(at).question);
                        note(RunnerReported { delivered: question, ..RunnerReported::default() });
                    }
                }
                Report::Usage(so_far) => used = Some(so_far),
            }
        }
        if !printed.is_empty() {
            note(RunnerReported { output: Some(printed), ..RunnerReported::default() });
        }
        for (question, _) in &gone {
            let reason = "the program asks no more".to_owned();
            let closed = QuestionClosed { question: *question, reason };
            events.push(Event::QuestionClosed(closed));
        }
        if !events.is_empty() {
            self.journal.commit(self.now(), events).await?;
        }
        if let Some(so_far) = used {
            self.pay(so_far, None).await?;
        }
        if !gone.is_empty() {
            self.unblock().await?;
        }
        for asked in new {
            if let Some(refusal) = self.refused_edit(&asked).await? {
                let order = Order::Answer { question: asked.id, text: format!("Deny: {refusal}") };
                // It may have ended meanwhile.
                let _ = orders.send(order).await;
                continue;
            }
            let id = self.question_id(&asked.fingerprint, &open.late).await?;
            open.asked.push((id, asked));
        }
        for (id, asked) in &open.asked {
            if self.journal.read(|_, run| run.asked(*id) == QuestionProgress::No).await {
                let question = in_inbox(*id, asked, &self.seen_at);
                self.journal.ask(self.now(), question).await?;
                self.block(StatusReason::Question).await?;
            }
        }
        Ok(())
    }

    /// The same for the same question after a restart. One that is asked once more after its end is another one. `late`
    /// are the answers that the program was started with.
    async fn question_id(
        &self,
        fingerprint: &str,
        late: &[LateAnswer],
    ) -> Result<QuestionId, Error> {
        let is_it = |question: &Question| {
            question.binding.as_ref().is_some_and(|binding| binding.arguments_hash == fingerprint)
        };
        let mut last = None;
        let mut asked = 0;
        let mut used: Vec<QuestionId> = late.iter().map(|late| late.question).collect();
        for record in self.attempt.engine.tree.store().journal().of(self.journal.id())? {
            match record.event {
                Event::QuestionAsked(question) if is_it(&question) => {
                    (last, asked) = (Some(question.id), asked + 1);
                }
                Event::RunnerReported(reported) => used.extend(reported.delivered),
                _ => {}
            }
        }
        // An answer that came while the program was starting is one to what it asks now.
        if let Some(last) = last
            && self
                .journal
                .read(|_, run| match run.asked(last) {
                    QuestionProgress::Open => true,
                    QuestionProgress::Answered(_) => !used.contains(&last),
                    QuestionProgress::No => false,
                })
                .await
        {
            return Ok(last);
        }
        let task = self.journal.id().to_string();
        Ok(QuestionId::derived(&task, &format!("{fingerprint} {asked}")))
    }
}

/// A program has got the answer to a question.
fn delivered(question: QuestionId) -> Event {
    let delivered = Some(question);
    Event::RunnerReported(Box::new(RunnerReported { delivered, ..RunnerReported::default() }))
}

/// A program's question as the inbox shows it. It is asked in this directory.
fn in_inbox(id: QuestionId, asked: &RunnerQuestion, directory: &Path) -> Question {
    let kind = match asked.asks {
        Asks::Permission => QuestionKind::Permission,
        Asks::Choice | Asks::Confirm | Asks::Text => QuestionKind::Runner,
    };
    Question {
        kind,
        options: asked.options.clone(),
        context: asked.context.clone(),
        // After a restart the same question is known by this.
        binding: Some(windlass_core::question::Binding {
            arguments_hash: asked.fingerprint.clone(),
            cwd: directory.display().to_string(),
            files: Vec::new(),
            mark: None,
        }),
        ..question(id, asked.question.clone())
    }
}
