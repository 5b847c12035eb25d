//! The commands of Redis: their names, what each is about, and how it is answered.
//!
//! In: a name as it was sent. Out: its [`Entry`], found by one look into a table: this runs for every command.

use std::collections::HashMap;
use std::sync::LazyLock;

use foldhash::fast::FixedState;

use super::command::{About, Answer};

/// Longest name that is told.
const MAX_NAME: usize = 32;

/// A command with a name that is known.
#[derive(Debug)]
pub(super) struct Entry {
    pub name: &'static str,
    pub about: About,
    pub answer: Answer,
    /// It is answered when something happens: an entry is pushed, a replica acknowledges.
    pub awaits_event: bool,
    /// A connection is known by it as one to Redis, where nothing else tells.
    is_telling: bool,
}

/// The entry of that name, in any case.
pub(super) fn find(name: &[u8]) -> Option<&'static Entry> {
    let mut upper = [0; MAX_NAME];
    let upper = upper.get_mut(..name.len())?;
    upper.copy_from_slice(name);
    upper.make_ascii_uppercase();
    COMMANDS.get(&*upper)
}

/// Is this the name of a command?
pub(super) fn is_telling(name: &[u8]) -> bool {
    find(name).is_some_and(|entry| entry.is_telling)
}

/// A name as documents write it.
pub(super) fn upper(name: &[u8]) -> String {
    String::from_utf8_lossy(name.get(..MAX_NAME).unwrap_or(name)).to_ascii_uppercase()
}

static COMMANDS: LazyLock<HashMap<&'static [u8], Entry, FixedState>> = LazyLock::new(|| {
    let mut commands = HashMap::with_hasher(FixedState::default());
    for (names, is_telling) in [(TELLING, true), (OTHERS, false)] {
        for name in names.split_ascii_whitespace() {
            let subject = SUBJECTS.iter().find(|(command, _)| *command == name);
            let entry = Entry {
                name,
                about: subject.map_or(About::Argument(1), |(_, about)| *about),
                answer: answer(name),
                awaits_event: AWAITING.contains(&name),
                is_telling,
            };
            commands.insert(name.as_bytes(), entry);
        }
    }
    commands
});

fn answer(name: &str) -> Answer {
    match name {
        "SUBSCRIBE" | "PSUBSCRIBE" | "SSUBSCRIBE" | "UNSUBSCRIBE" | "PUNSUBSCRIBE" | "SUNSUBSCRIBE" => Answer::Channels,
        "MONITOR" => Answer::Feed,
        "SYNC" | "PSYNC" => Answer::Replication,
        _ => Answer::One,
    }
}

/// Names of commands whose subject is not their first argument. All others are about that: the key, mostly.
const SUBJECTS: &[(&str, About)] = &[
    ("ACL", About::Part(2)),
    ("AUTH", About::Nothing),
    ("BITOP", About::Argument(2)),
    ("BLMPOP", About::Argument(3)),
    ("BZMPOP", About::Argument(3)),
    ("CLIENT", About::Part(0)),
    ("CLUSTER", About::Part(2)),
    ("COMMAND", About::Part(2)),
    ("CONFIG", About::Part(2)),
    ("DEBUG", About::Part(0)),
    ("ECHO", About::Nothing),
    ("EVAL", About::Argument(3)),
    ("EVAL_RO", About::Argument(3)),
    ("FUNCTION", About::Part(0)),
    ("LATENCY", About::Part(2)),
    ("LMPOP", About::Argument(2)),
    ("MEMORY", About::Part(2)),
    ("MODULE", About::Part(0)),
    ("OBJECT", About::Part(2)),
    ("PING", About::Nothing),
    ("PUBSUB", About::Part(2)),
    ("SCRIPT", About::Part(0)),
    ("SENTINEL", About::Part(2)),
    ("SINTERCARD", About::Argument(2)),
    ("SLOWLOG", About::Part(0)),
    ("XGROUP", About::Part(2)),
    ("XINFO", About::Part(2)),
    ("XREAD", About::Streams),
    ("XREADGROUP", About::Streams),
    ("ZDIFF", About::Argument(2)),
    ("ZINTER", About::Argument(2)),
    ("ZMPOP", About::Argument(2)),
    ("ZUNION", About::Argument(2)),
];

/// XREAD and XREADGROUP are among them where an argument says so.
const AWAITING: &[&str] =
    &["BLMOVE", "BLMPOP", "BLPOP", "BRPOP", "BRPOPLPUSH", "BZMPOP", "BZPOPMAX", "BZPOPMIN", "WAIT", "WAITAOF"];

/// Commands by which a connection is known as one to Redis.
const TELLING: &str = "\
    ACL APPEND ASKING AUTH BGSAVE BITCOUNT BITFIELD BLMOVE BLMPOP BLPOP BRPOP BRPOPLPUSH BZMPOP BZPOPMAX BZPOPMIN \
    CLIENT CLUSTER COMMAND CONFIG COPY DBSIZE DEBUG DECR DECRBY DEL DISCARD DUMP ECHO EVAL EVALSHA EVAL_RO EXEC \
    EXISTS EXPIRE EXPIREAT FCALL FCALL_RO FLUSHALL FLUSHDB FUNCTION GEOADD GEOSEARCH GET GETBIT GETDEL GETEX \
    GETRANGE GETSET HDEL HELLO HEXISTS HGET HGETALL HINCRBY HKEYS HLEN HMGET HMSET HSCAN HSET HSETNX HVALS INCR \
    INCRBY INCRBYFLOAT INFO KEYS LATENCY LINDEX LINSERT LLEN LMOVE LMPOP LPOP LPOS LPUSH LPUSHX LRANGE LREM LSET \
    LTRIM MEMORY MGET MIGRATE MODULE MONITOR MOVE MSET MSETNX MULTI OBJECT PERSIST PEXPIRE PEXPIREAT PFADD PFCOUNT \
    PFMERGE PING PSETEX PSUBSCRIBE PSYNC PTTL PUBLISH PUBSUB PUNSUBSCRIBE QUIT RANDOMKEY READONLY RENAME REPLCONF \
    RESET RESTORE ROLE RPOP RPOPLPUSH RPUSH RPUSHX SADD SCAN SCARD SCRIPT SDIFF SELECT SENTINEL SET SETBIT SETEX \
    SETNX SETRANGE SINTER SINTERCARD SISMEMBER SLOWLOG SMEMBERS SMISMEMBER SMOVE SORT SPOP SPUBLISH SRANDMEMBER \
    SREM SSCAN SSUBSCRIBE STRLEN SUBSCRIBE SUNION SUNIONSTORE SUNSUBSCRIBE SWAPDB SYNC TIME TOUCH TTL TYPE UNLINK \
    UNSUBSCRIBE UNWATCH WAIT WATCH XACK XADD XAUTOCLAIM XCLAIM XDEL XGROUP XINFO XLEN XPENDING XRANGE XREAD \
    XREADGROUP XREVRANGE XTRIM ZADD ZCARD ZCOUNT ZDIFF ZINCRBY ZINTER ZMPOP ZPOPMAX ZPOPMIN ZRANGE ZRANGEBYSCORE \
    ZRANK ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE ZUNION \
    ZUNIONSTORE";

/// Commands of which something has to be known, but whose names alone tell too little of a connection.
const OTHERS: &str = "BITOP WAITAOF";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_are_known_in_any_case() {
        assert!(
            is_telling(b"get")
                && is_telling(b"ZUNIONSTORE")
                && is_telling(b"ACL")
                && !is_telling(b"message")
                && !is_telling(b"")
        );
        assert!(!is_telling(b"bitop") && !is_telling(&[b'G'; 100]));
    }

    #[test]
    fn whatever_is_said_of_a_command_is_found_by_its_name() {
        for (name, about) in SUBJECTS {
            assert_eq!(find(name.to_lowercase().as_bytes()).unwrap().about, *about, "{name}");
        }
        assert!(AWAITING.iter().all(|name| find(name.as_bytes()).unwrap().awaits_event));
        assert_eq!(find(b"Subscribe").unwrap().answer, Answer::Channels);
    }
}
