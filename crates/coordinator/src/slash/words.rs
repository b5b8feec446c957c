//! How the words after a command are read as axes, scopes and options.

use std::str::FromStr;

use windlass_core::axes::{
    ModelMode, PermissionProfile, RunControl, UnknownValue, WorkMode, parse,
};
use windlass_core::session::{AxesChange, Scope};
use windlass_core::string_enum;

use super::table::SlashCommand;
use crate::Error;

string_enum! {
    /// What `/steer` can change, by its name.
    Axis ("axis") {
        Mode = "mode",
        Control = "control",
        Profile = "permission-profile",
        ModelMode = "model-mode",
    }
}

/// The error of a command that is used otherwise than it can be.
pub(super) fn usage_error(command: &SlashCommand, problem: impl ToString) -> Error {
    Error::BadCommand { problem: problem.to_string(), usage: command.usage() }
}

/// Axes and a scope, as words name them.
#[derive(Default)]
pub(super) struct AxesRequest {
    pub(super) change: AxesChange,
    pub(super) scope: Option<Scope>,
    /// Words that are neither.
    pub(super) rest: Vec<String>,
}

impl AxesRequest {
    /// Reads options; what is neither an option nor the value of one is left in `rest`, in its order.
    pub(super) fn read(command: &SlashCommand, words: &[&str]) -> Result<Self, Error> {
        let mut order = Self::default();
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = |option: &str| {
                words
                    .next()
                    .copied()
                    .ok_or_else(|| usage_error(command, format!("`{option}` needs a value")))
            };
            match *word {
                "--manual" => order.change.run_control = Some(RunControl::Manual),
                "--assisted" => order.change.run_control = Some(RunControl::Assisted),
                "--autonomous" => order.change.run_control = Some(RunControl::Autonomous),
                "--mode" => order.set(command, Axis::Mode, value(word)?)?,
                "--control" => order.set(command, Axis::Control, value(word)?)?,
                "--permission-profile" => order.set(command, Axis::Profile, value(word)?)?,
                "--model-mode" => order.set(command, Axis::ModelMode, value(word)?)?,
                "--scope" => order.scope = Some(axis(command, value(word)?)?),
                option if option.starts_with("--") => {
                    return Err(usage_error(command, format!("`{option}` is not an option of it")));
                }
                word => order.rest.push(word.to_owned()),
            }
        }
        Ok(order)
    }

    /// Sets one axis.
    pub(super) fn set(
        &mut self,
        command: &SlashCommand,
        name: Axis,
        value: &str,
    ) -> Result<(), Error> {
        match name {
            Axis::Mode => self.change.work_mode = Some(axis::<WorkMode>(command, value)?),
            Axis::Control => self.change.run_control = Some(axis::<RunControl>(command, value)?),
            Axis::Profile => {
                self.change.permission_profile = Some(axis::<PermissionProfile>(command, value)?);
            }
            Axis::ModelMode => self.change.model_mode = Some(axis::<ModelMode>(command, value)?),
        }
        Ok(())
    }

    /// Takes the scope that may be the last word, and refuses any other word.
    pub(super) fn finish(
        mut self,
        command: &SlashCommand,
    ) -> Result<(AxesChange, Option<Scope>), Error> {
        if let Some(word) = (!self.rest.is_empty()).then(|| self.rest.remove(0)) {
            self.scope = Some(axis(command, &word)?);
        }
        match self.rest.first() {
            Some(word) => Err(usage_error(command, format!("`{word}` is one word too many"))),
            None => Ok((self.change, self.scope)),
        }
    }
}

/// Reads a value of an axis or a scope; the error lists what is allowed (MS-091).
pub(super) fn axis<T: FromStr<Err = UnknownValue>>(
    command: &SlashCommand,
    word: &str,
) -> Result<T, Error> {
    parse(word).map_err(|unknown| usage_error(command, unknown))
}
