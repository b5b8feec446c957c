//! The commands that switch to a role, exactly `/architect`, `/executor` and `/auditor` (AX-060), and the one that shows
//! the commitments that roles work with.

use windlass_core::commitment::{Commitment, Evidence, Party};
use windlass_core::id::ChangeId;
use windlass_core::role::{Role, RoleChange};
use windlass_core::session::{AxesChange, Scope, Source};

use super::run::Invocation;
use super::{Block, Reply};
use crate::{AxesOrder, CommitmentFilter, CommitmentRow, Error};

impl Invocation<'_> {
    /// Switches to a role (AX-093, AX-094, AX-095).
    pub(super) async fn take_role(self) -> Result<Reply, Error> {
        let name = self.command.name;
        let Ok(role) = name.parse::<Role>() else {
            return Err(Error::UnknownCommand { name: name.to_owned(), nearest: None });
        };
        if !self.rest.is_empty() {
            return Err(self.usage_error(format!("`/{name}` takes nothing else")));
        }
        let request = self.input.request.as_deref();
        let order = AxesOrder {
            wanted: AxesChange { role: Some(RoleChange::Take(role)), ..AxesChange::default() },
            scope: Scope::Now,
            reason: format!("/{name}"),
            source: Source::Role,
            by: self.input.by.clone(),
            id: request.map(|request| ChangeId::derived(request, "role")),
        };
        let changed = self.session.change(order).await?;
        let mut words = role.greeting().to_owned();
        if role.requires_commitment() {
            let ledger = self.session.coordinator.commitments();
            for row in ledger.claimed_in(self.session.id())? {
                words += &format!("\n{} {}", row.id, row.title);
            }
        }
        if changed.waits {
            words += " It takes effect when the running step has ended.";
        }
        // Said as it is: a surface that gets other axes would draw those in place of the words.
        Ok(self.say(words))
    }

    /// What is promised, or one commitment with its evidence. What is another's does not exist.
    pub(super) fn commitments(self, named: &str) -> Result<Vec<Block>, Error> {
        let ledger = self.session.coordinator.commitments();
        if !named.is_empty() {
            let found = ledger.get(ledger.find(named)?)?;
            return match self.input.may_see(found.user_id.as_deref()) {
                true => Ok(commitment_blocks(&found)),
                false => Err(windlass_store::Error::UnknownCommitment(named.to_owned()).into()),
            };
        }
        let mut rows = ledger.list(&CommitmentFilter::default())?;
        rows.retain(|row| self.input.may_see(row.user_id.as_deref()));
        if rows.is_empty() {
            let words = "Nothing is promised. In the role `/architect` an agent makes commitments.";
            return Ok(vec![Block::Words { text: words.to_owned() }]);
        }
        let row = |row: &CommitmentRow| {
            vec![
                row.id.to_string(),
                row.state.to_string(),
                row.claimed_by.as_ref().map(Party::to_string).unwrap_or_default(),
                row.evidence_count.to_string(),
                row.title.clone(),
            ]
        };
        let headings = ["COMMITMENT", "STATE", "CLAIMED BY", "EVIDENCE", "TITLE"];
        Ok(vec![Block::table(&headings, &[3], rows.iter().map(row).collect())])
    }
}

fn commitment_blocks(found: &Commitment) -> Vec<Block> {
    let mut fields =
        vec![("state", found.state.to_string()), ("opened by", found.opened_by.to_string())];
    fields.extend(found.claimed_by.as_ref().map(|by| ("claimed by", by.to_string())));
    fields.extend(found.summary.clone().map(|summary| ("submitted", summary)));
    fields.extend(found.verdict.map(|verdict| ("verdict", verdict.to_string())));
    fields.extend(found.verdict_reason.clone().map(|reason| ("because", reason)));
    let mut blocks =
        vec![Block::heading(format!("{} {}", found.id, found.title)), Block::fields(fields)];
    if !found.body.is_empty() {
        blocks.push(Block::Words { text: found.body.clone() });
    }
    if !found.evidence.is_empty() {
        let row = |one: &Evidence| {
            vec![one.kind.to_string(), one.uri.clone(), one.sha256.clone(), one.description.clone()]
        };
        let rows = found.evidence.iter().map(row).collect();
        blocks.push(Block::table(&["EVIDENCE", "FROM", "SHA256", "SHOWS"], &[], rows));
    }
    blocks
}
