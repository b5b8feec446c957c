//! The bus on Redis: streams with one consumer group, a list of injections per task, keys for control
//! and leases (ES-386…392).
//!
//! Invariants:
//! - Names are exactly those of the contract; other programs use the same keys.
//! - One connection waits for entries and nothing else uses it; all other commands share a second one.
//! - After a lost connection the entries that were given to us and never arrived are asked for first.

use std::time::Duration;

use redis::streams::{StreamAutoClaimReply, StreamId, StreamReadReply};
use redis::{Client, Cmd, FromRedisValue, Value, cmd, pipe};
use windlass_core::id::{SessionId, TaskId};
use windlass_core::injection::Injection;
use windlass_store::Outgoing;

use super::wire::Wire;
use super::{
    Bus, Error, Flag, GROUP, INJECTIONS_AT_ONCE, InStream, PendingInjection, StreamEntry,
    Subscription, flag_key, injections_key, lease_key,
};
use crate::{BoxFuture, Lease};

/// Entries kept in a stream that others read; who falls further behind reads the store.
const KEPT_ENTRIES: usize = 100_000;

/// The field of an entry that holds its JSON.
const DATA: &str = "data";

/// A control flag outlives its task by so long at most.
const FLAG_SECONDS: u64 = 7 * 24 * 60 * 60;

/// Takes or renews a lease that is free or one's own.
const HOLD: &str = "local held = redis.call('GET', KEYS[1])
if held == false or held == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
end
return 0";

/// Compare and delete: a lease that ran out and was taken by another stays.
const RELEASE: &str = "if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0";

/// Forgets consumers that have been silent for long and have nothing in hand.
const FORGET: &str = "local gone = 0
for _, one in ipairs(redis.call('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  if one[4] == 0 and one[6] > tonumber(ARGV[2]) then
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], one[2])
    gone = gone + 1
  end
end
return gone";

/// A consumer that has not looked for so long is dead; a live one looks twice a second.
const DEAD_AFTER: Duration = Duration::from_secs(60 * 60);

/// A Redis server.
pub struct Redis {
    commands: Wire,
    reading: Wire,
}

impl Redis {
    /// A bus at a `redis://` or `rediss://` address; it is connected to when it is first used.
    pub fn new(url: &str) -> Result<Self, Error> {
        let refused =
            |source| Error::Refused { place: "the configured address".to_owned(), source };
        let client = Client::open(url).map_err(refused)?;
        // Without user and password.
        let place = client.get_connection_info().addr().to_string();
        let wire = || Wire::new(client.clone(), place.clone());
        Ok(Self { commands: wire(), reading: wire() })
    }

    /// Fails unless the server answers.
    pub async fn check(&self) -> Result<(), Error> {
        self.commands.run::<String>(&cmd("PING")).await.map(drop)
    }

    async fn read(
        &self,
        subscription: &Subscription,
        wait: Duration,
    ) -> Result<Vec<StreamEntry>, Error> {
        if self.reading.is_down().await {
            let given = self.read_from(subscription, "0", None).await?;
            if !given.is_empty() {
                return Ok(given);
            }
        }
        self.read_from(subscription, ">", Some(wait)).await
    }

    async fn read_from(
        &self,
        subscription: &Subscription,
        from: &str,
        wait: Option<Duration>,
    ) -> Result<Vec<StreamEntry>, Error> {
        let mut command = cmd("XREADGROUP");
        command
            .arg("GROUP")
            .arg(GROUP)
            .arg(&subscription.consumer)
            .arg("COUNT")
            .arg(subscription.limit);
        if let Some(wait) = wait {
            // 0 would mean forever.
            command.arg("BLOCK").arg(wait.as_millis().max(1) as u64);
        }
        command.arg("STREAMS");
        for stream in &subscription.streams {
            command.arg(stream.as_str());
        }
        for _ in &subscription.streams {
            command.arg(from);
        }
        let wait = wait.unwrap_or_default();
        let reply: Option<StreamReadReply> =
            self.query_groups(subscription, &command, wait).await?;
        let keys = reply.map(|reply| reply.keys).unwrap_or_default();
        let entries = keys.into_iter().filter_map(|key| {
            let stream: InStream = key.key.parse().ok()?;
            Some(key.ids.into_iter().map(move |entry| read_entry(stream, entry)))
        });
        Ok(entries.flatten().collect())
    }

    /// Runs a command that needs the groups, making them where they are missing: the streams may be new,
    /// or the server may have come back without its data.
    async fn query_groups<T: FromRedisValue>(
        &self,
        subscription: &Subscription,
        command: &Cmd,
        wait: Duration,
    ) -> Result<T, Error> {
        match self.reading.wait(command, wait).await {
            Err(Error::Refused { source, .. }) if source.code() == Some("NOGROUP") => {
                for stream in &subscription.streams {
                    self.make_group(*stream).await?;
                }
                self.reading.wait(command, wait).await
            }
            answered => answered,
        }
    }

    async fn make_group(&self, stream: InStream) -> Result<(), Error> {
        let mut make = cmd("XGROUP");
        make.arg("CREATE").arg(stream.as_str()).arg(GROUP).arg("0").arg("MKSTREAM");
        match self.commands.run::<Value>(&make).await {
            Err(Error::Refused { source, .. }) if source.code() == Some("BUSYGROUP") => Ok(()),
            made => made.map(drop),
        }
    }

    /// Every process is a consumer of its own; those of the past do not pile up.
    async fn forget_dead(&self, stream: InStream, idle: Duration) -> Result<(), Error> {
        let mut forget = cmd("EVAL");
        forget.arg(FORGET).arg(1).arg(stream.as_str()).arg(GROUP).arg(idle.as_millis() as u64);
        self.commands.run::<u64>(&forget).await.map(drop)
    }

    async fn claim_from(
        &self,
        subscription: &Subscription,
        stream: InStream,
        idle: Duration,
    ) -> Result<Vec<StreamEntry>, Error> {
        let mut command = cmd("XAUTOCLAIM");
        command.arg(stream.as_str()).arg(GROUP).arg(&subscription.consumer);
        command.arg(idle.as_millis() as u64).arg("0-0").arg("COUNT").arg(subscription.limit);
        match self.commands.run::<StreamAutoClaimReply>(&command).await {
            // Nothing was ever taken there.
            Err(Error::Refused { source, .. }) if source.code() == Some("NOGROUP") => {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
            Ok(reply) => {
                Ok(reply.claimed.into_iter().map(|entry| read_entry(stream, entry)).collect())
            }
        }
    }
}

impl Bus for Redis {
    fn place(&self) -> String {
        format!("redis at {}", self.commands.place())
    }

    fn publish<'a>(&'a self, messages: &'a [Outgoing]) -> BoxFuture<'a, Result<(), Error>> {
        let mut all = pipe();
        all.atomic();
        for message in messages {
            let add = all.cmd("XADD").arg(message.stream.as_str());
            add.arg("MAXLEN").arg("~").arg(KEPT_ENTRIES).arg("*").arg("key").arg(&message.key);
            if let Some(command_id) = &message.command_id {
                add.arg("command_id").arg(command_id);
            }
            add.arg(DATA).arg(&message.body).ignore();
        }
        Box::pin(async move { self.commands.run_all(&all).await })
    }

    fn submit<'a>(
        &'a self,
        stream: InStream,
        key: Option<&'a str>,
        body: &'a str,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let mut add = cmd("XADD");
        add.arg(stream.as_str()).arg("*");
        if let Some(key) = key {
            add.arg("key").arg(key);
        }
        add.arg(DATA).arg(body);
        Box::pin(async move { self.commands.run::<String>(&add).await.map(drop) })
    }

    fn take<'a>(
        &'a self,
        subscription: &'a Subscription,
        wait: Duration,
    ) -> BoxFuture<'a, Result<Vec<StreamEntry>, Error>> {
        Box::pin(self.read(subscription, wait))
    }

    fn claim<'a>(
        &'a self,
        subscription: &'a Subscription,
        idle: Duration,
    ) -> BoxFuture<'a, Result<Vec<StreamEntry>, Error>> {
        Box::pin(async move {
            let mut claimed = Vec::new();
            for stream in &subscription.streams {
                claimed.extend(self.claim_from(subscription, *stream, idle).await?);
                match self.forget_dead(*stream, DEAD_AFTER.max(idle)).await {
                    // A stream that nobody has used yet, or a server that may not run scripts.
                    Err(Error::Refused { .. }) => {}
                    forgotten => forgotten?,
                }
            }
            Ok(claimed)
        })
    }

    fn acknowledge<'a>(&'a self, entry: &'a StreamEntry) -> BoxFuture<'a, Result<(), Error>> {
        let stream = entry.stream.as_str();
        let mut both = pipe();
        both.atomic().cmd("XACK").arg(stream).arg(GROUP).arg(&entry.id).ignore();
        // Only we read it, and the store has it.
        both.cmd("XDEL").arg(stream).arg(&entry.id).ignore();
        Box::pin(async move { self.commands.run_all(&both).await })
    }

    fn push<'a>(
        &'a self,
        task: TaskId,
        injection: &'a Injection,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let text = serde_json::to_string(injection).unwrap_or_default();
        let mut push = cmd("RPUSH");
        push.arg(injections_key(task)).arg(text);
        Box::pin(async move { self.commands.run::<u64>(&push).await.map(drop) })
    }

    fn list<'a>(
        &'a self,
        tasks: &'a [TaskId],
    ) -> BoxFuture<'a, Result<Vec<PendingInjection>, Error>> {
        let mut all = pipe();
        for task in tasks {
            all.cmd("LRANGE").arg(injections_key(*task)).arg(0).arg(INJECTIONS_AT_ONCE - 1);
        }
        Box::pin(async move {
            if tasks.is_empty() {
                return Ok(Vec::new());
            }
            let lists: Vec<Vec<String>> = self.commands.run_all(&all).await?;
            let listed = tasks.iter().zip(lists).flat_map(|(task, texts)| {
                texts.into_iter().map(|text| PendingInjection { task: *task, text })
            });
            Ok(listed.collect())
        })
    }

    fn remove<'a>(&'a self, listed: &'a PendingInjection) -> BoxFuture<'a, Result<(), Error>> {
        let mut remove = cmd("LREM");
        remove.arg(injections_key(listed.task)).arg(1).arg(&listed.text);
        Box::pin(async move { self.commands.run::<u64>(&remove).await.map(drop) })
    }

    fn flags<'a>(
        &'a self,
        tasks: &'a [TaskId],
    ) -> BoxFuture<'a, Result<Vec<(TaskId, Flag)>, Error>> {
        let mut get = cmd("MGET");
        for task in tasks {
            get.arg(flag_key(*task));
        }
        Box::pin(async move {
            if tasks.is_empty() {
                return Ok(Vec::new());
            }
            let values: Vec<Option<String>> = self.commands.run(&get).await?;
            let flags = tasks.iter().zip(values);
            Ok(flags.filter_map(|(task, value)| Some((*task, value?.parse().ok()?))).collect())
        })
    }

    fn set_flag<'a>(
        &'a self,
        task: TaskId,
        flag: Option<Flag>,
    ) -> BoxFuture<'a, Result<(), Error>> {
        let command = match flag {
            Some(flag) => {
                let mut set = cmd("SET");
                set.arg(flag_key(task)).arg(flag.as_str()).arg("EX").arg(FLAG_SECONDS);
                set
            }
            None => {
                let mut remove = cmd("DEL");
                remove.arg(flag_key(task));
                remove
            }
        };
        Box::pin(async move { self.commands.run::<Value>(&command).await.map(drop) })
    }
}

impl Lease for Redis {
    fn take<'a>(
        &'a self,
        session: SessionId,
        owner: &'a str,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<bool, crate::Error>> {
        let mut hold = cmd("EVAL");
        hold.arg(HOLD).arg(1).arg(lease_key(session)).arg(owner).arg(ttl.as_millis() as u64);
        Box::pin(async move { Ok(self.commands.run(&hold).await?) })
    }

    fn give_back<'a>(
        &'a self,
        session: SessionId,
        owner: &'a str,
    ) -> BoxFuture<'a, Result<(), crate::Error>> {
        let mut release = cmd("EVAL");
        release.arg(RELEASE).arg(1).arg(lease_key(session)).arg(owner);
        Box::pin(async move { Ok(self.commands.run::<u64>(&release).await.map(drop)?) })
    }
}

/// An entry's JSON is in the field `data`; one field alone may have any name.
fn read_entry(stream: InStream, entry: StreamId) -> StreamEntry {
    let StreamId { id, map, .. } = entry;
    let alone = (map.len() == 1).then(|| map.values().next()).flatten();
    let body = map.get(DATA).or(alone).map(text).unwrap_or_default();
    StreamEntry { stream, id, body }
}

fn text(value: &Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::SimpleString(text) => text.clone(),
        _ => String::new(),
    }
}
