//! What a command asks: its name and what it is about; never a value, never a password.
//!
//! In: the arguments of a command, one after the other. Out: method and target of an exchange, and how it is answered.
//! Bounded: [`MAX_NAME`] bytes of a name, and what `resp` keeps of one argument.

use super::resp::MAX_TEXT;

const MAX_NAME: usize = 32;

/// What a command is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum About {
    /// The argument of that number.
    Argument(u8),
    /// Nothing that may be told, or nothing.
    Nothing,
    /// The first argument says what is asked of a group of commands; the argument of that number, what it is about.
    Part(u8),
    /// The argument behind STREAMS.
    Streams,
}

/// How a command is answered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Answer {
    #[default]
    One,
    /// One reply for each channel.
    Channels,
    /// Once, and then without end.
    Feed,
    /// By bytes that are no replies.
    Replication,
    /// CLIENT REPLY: what follows is answered, or not.
    Reply(Replies),
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Replies {
    #[default]
    On,
    Off,
    /// None to this command and the next.
    Skip,
}

/// Names of commands whose subject is not their first argument. All others are about that: the key, mostly.
static SUBJECTS: &[(&str, About)] = &[
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

/// Commands that are answered when something happens: an entry is pushed, a replica acknowledges.
const AWAITING: &[&str] = &[
    "BLMOVE",
    "BLMPOP",
    "BLPOP",
    "BRPOP",
    "BRPOPLPUSH",
    "BZMPOP",
    "BZPOPMAX",
    "BZPOPMIN",
    "WAIT",
    "WAITAOF",
    "XREAD BLOCK",
    "XREADGROUP BLOCK",
];

/// Commands by which a connection is known as one to Redis, where nothing else is.
static KNOWN: &str = "\
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

/// Is this the name of a command?
pub(super) fn is_known(name: &[u8]) -> bool {
    let name = upper(name);
    KNOWN.split(' ').any(|known| known == name)
}

/// A command as far as it is read.
#[derive(Debug, Default)]
pub(super) struct Command {
    name: String,
    about: Option<About>,
    target: Option<Box<str>>,
    /// Arguments so far, the name included.
    pub count: u64,
    /// The next argument is the first stream.
    streams_follow: bool,
    pub answer: Answer,
}

impl Command {
    /// Is the next argument's text needed?
    pub fn wants(&self) -> bool {
        match self.about {
            None => true,
            Some(About::Argument(at)) => self.count == u64::from(at),
            Some(About::Part(at)) => {
                self.count == 1 || self.count == u64::from(at) || self.name.starts_with("CLIENT") && self.count == 2
            }
            Some(About::Streams) => self.target.is_none() && self.count < 16,
            Some(About::Nothing) => false,
        }
    }

    /// The next argument, as far as it is kept.
    pub fn argument(&mut self, text: Option<&[u8]>) {
        let at = self.count;
        self.count = at.saturating_add(1);
        let text = text.unwrap_or_default();
        if at == 0 {
            self.name = upper(text);
            let known = SUBJECTS.iter().find(|(name, _)| *name == self.name);
            self.about = Some(known.map_or(About::Argument(1), |(_, about)| *about));
            self.answer = match self.name.as_str() {
                "SUBSCRIBE" | "PSUBSCRIBE" | "SSUBSCRIBE" | "UNSUBSCRIBE" | "PUNSUBSCRIBE" | "SUNSUBSCRIBE" => {
                    Answer::Channels
                }
                "MONITOR" => Answer::Feed,
                "SYNC" | "PSYNC" => Answer::Replication,
                _ => Answer::One,
            };
            return;
        }
        match self.about {
            Some(About::Part(_)) if at == 1 => {
                self.name.push(' ');
                self.name.push_str(&upper(text));
            }
            Some(About::Part(_)) if at == 2 && self.name == "CLIENT REPLY" => {
                self.answer = Answer::Reply(match upper(text).as_str() {
                    "OFF" => Replies::Off,
                    "SKIP" => Replies::Skip,
                    _ => Replies::On,
                });
            }
            Some(About::Argument(wanted) | About::Part(wanted)) if at == u64::from(wanted) => {
                self.target = Some(told(text));
            }
            Some(About::Streams) if self.target.is_none() => {
                if std::mem::take(&mut self.streams_follow) {
                    self.target = Some(told(text));
                } else if text.eq_ignore_ascii_case(b"STREAMS") {
                    self.streams_follow = true;
                } else if text.eq_ignore_ascii_case(b"BLOCK") {
                    self.name.push_str(" BLOCK");
                }
            }
            _ => {}
        }
    }

    /// A command on one line.
    pub fn inline(line: &[u8]) -> Self {
        let mut command = Self::default();
        for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
            command.argument(Some(word));
        }
        command
    }

    /// Is it answered when something happens, not when the server has worked?
    pub fn awaits_event(&self) -> bool {
        AWAITING.contains(&self.name.as_str())
    }

    pub fn method(&self) -> Option<Box<str>> {
        (!self.name.is_empty()).then(|| self.name.as_str().into())
    }

    pub fn target(&mut self) -> Option<Box<str>> {
        self.target.take()
    }
}

/// A text of the capture; `…` where it is cut.
pub(super) fn told(text: &[u8]) -> Box<str> {
    let told = String::from_utf8_lossy(text);
    if text.len() < MAX_TEXT { told.into() } else { format!("{told}…").into() }
}

/// A name as documents write it.
fn upper(name: &[u8]) -> String {
    String::from_utf8_lossy(name.get(..MAX_NAME).unwrap_or(name)).to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (Option<Box<str>>, Option<Box<str>>) {
        let mut command = Command::inline(line.as_bytes());
        (command.method(), command.target())
    }

    #[test]
    fn a_command_is_told_by_its_name_and_what_it_is_about() {
        for (line, method, target) in [
            ("get k", "GET", Some("k")),
            ("SET k secret", "SET", Some("k")),
            ("AUTH user secret", "AUTH", None),
            ("HELLO 3 AUTH user secret", "HELLO", Some("3")),
            ("CONFIG SET requirepass secret", "CONFIG SET", Some("requirepass")),
            ("CLIENT SETNAME me", "CLIENT SETNAME", None),
            ("ACL SETUSER me >secret", "ACL SETUSER", Some("me")),
            ("BLPOP q 0", "BLPOP", Some("q")),
            ("XREAD COUNT 2 BLOCK 0 STREAMS s $", "XREAD BLOCK", Some("s")),
            ("XREADGROUP GROUP g c STREAMS s >", "XREADGROUP", Some("s")),
            ("EVAL return(1) 1 k", "EVAL", Some("k")),
            ("PING hello", "PING", None),
            ("MULTI", "MULTI", None),
        ] {
            assert_eq!(read(line), (Some(method.into()), target.map(Into::into)), "{line}");
        }
    }

    #[test]
    fn commands_that_await_an_event_are_known() {
        let awaits = |line: &str| Command::inline(line.as_bytes()).awaits_event();
        assert!(awaits("blpop q 0") && awaits("XREAD BLOCK 0 STREAMS s $") && awaits("WAIT 1 0"));
        assert!(!awaits("LPOP q") && !awaits("XREAD STREAMS s 0") && !awaits("SUBSCRIBE c"));
    }

    #[test]
    fn names_are_known_in_any_case() {
        assert!(
            is_known(b"get") && is_known(b"ZUNIONSTORE") && is_known(b"ACL") && !is_known(b"message") && !is_known(b"")
        );
    }
}
