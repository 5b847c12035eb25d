//! Responses that take long by design: which requests and responses of HTTP say that they come when something happens.
//!
//! In: the request's method and target, the response's status and type. Out: [`Exchange::awaits_event`] (nobody owes the
//! response before something happens) and [`Exchange::streams`] (nor the parts of it that come after its head). Sources:
//! the WHATWG HTML standard (`text/event-stream`), and the documents of Consul and Nomad (blocking queries), etcd,
//! Kubernetes (watches, logs), CouchDB (changes), Matrix, Telegram, Socket.IO, SignalR, SQS, Nacos, gRPC (health), Envoy (xDS),
//! Docker (`wait`), AWS Lambda (runtimes), GitLab (runners), Temporal (polls), Pub/Sub and Firestore (streams).
//! Non-goals: what only the content of a request says.

use super::{Exchange, Span};

/// A server that has nothing to say after so long has waited for something, not worked.
const POLLED_NS: i64 = 20_000_000_000;
/// The families of paths of Consul's API that block with an index alone.
const CONSUL: [&str; 9] = ["kv", "health", "catalog", "event", "config", "connect", "coordinate", "query", "session"];
/// Names of the last part of a path that is polled.
const POLLS: [&str; 6] = ["poll", "longpoll", "long-poll", "long_poll", "longpolling", "getupdates"];
/// How methods of gRPC begin that tell of changes.
const WATCHES: [&str; 4] = ["Watch", "Subscribe", "StreamAggregatedResources", "DeltaAggregatedResources"];
/// Other methods of gRPC that do: of Pub/Sub and Firestore.
const STREAMS: [&str; 2] = ["StreamingPull", "Listen"];
/// Methods of gRPC that are answered when there is work to do: of Temporal.
const WORK: [&str; 4] =
    ["PollWorkflowTaskQueue", "PollActivityTaskQueue", "PollNexusTaskQueue", "PollWorkflowExecutionUpdate"];
/// Value of `X-Amz-Target`: SQS in JSON. How long it waits is in the content, or set for the queue.
const RECEIVE: &[u8] = b"AmazonSQS.ReceiveMessage";
/// How paths end whose requests are answered when there is work to do, or when it is done.
const AWAITED: [&str; 4] =
    ["/configs/listener", "/notifications/v2", "/runtime/invocation/next", "/api/v4/jobs/request"];

/// Is this the type of content that comes in parts, when something happens?
pub(super) fn is_stream(content_type: &[u8]) -> bool {
    const TYPES: [&[u8]; 2] = [b"text/event-stream", b"multipart/x-mixed-replace"];
    let begins = |stream_type: &&[u8]| {
        content_type.split_at_checked(stream_type.len()).is_some_and(|(name, rest)| {
            name.eq_ignore_ascii_case(stream_type) && matches!(rest.first(), None | Some(b';' | b' '))
        })
    };
    TYPES.iter().any(begins) || content_type.ends_with(b";stream=watch")
}

/// Does a field of a request's head, of this value, ask for a response when something happens? `X-Amz-Target` does.
pub(super) fn is_awaiting(amz_target: &[u8]) -> bool {
    amz_target.eq_ignore_ascii_case(RECEIVE)
}

/// Notes what the head of a request says.
pub(super) fn note_request(exchange: &mut Exchange, is_grpc: bool, is_awaiting: bool) {
    let Some(target) = exchange.target.as_deref() else { return };
    let Asks { event, stream } =
        if is_grpc { Asks::called(target) } else { Asks::of(exchange.method.as_deref() == Some("GET"), target) };
    (exchange.awaits_event, exchange.streams) = (event || is_awaiting, stream);
}

/// Notes what the head of a response says. An error is no event.
pub(super) fn note_response(exchange: &mut Exchange, is_stream: bool, head: Span) {
    let is_get = exchange.method.as_deref() == Some("GET");
    let polled =
        exchange.request.last.zip(head.first).is_some_and(|(sent, answered)| answered.at - sent.at >= POLLED_NS);
    let in_vain = is_get && polled && matches!(exchange.status, Some(204 | 304));
    let is_error = exchange.status.is_some_and(|status| status >= 400) && exchange.protocol != "grpc";
    exchange.awaits_event = (exchange.awaits_event || in_vain) && !is_error;
    exchange.streams = (exchange.streams || is_stream) && !is_error;
    exchange.streams_from = head.last.filter(|_| exchange.streams);
}

/// What a target asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Asks {
    /// A response when something happens.
    event: bool,
    /// One that never ends.
    stream: bool,
}

impl Asks {
    /// A call of gRPC.
    fn called(target: &str) -> Self {
        let method = target.rsplit('/').next().unwrap_or_default();
        let stream = WATCHES.iter().any(|prefix| method.starts_with(prefix)) || STREAMS.contains(&method);
        Self { event: stream || WORK.contains(&method), stream }
    }

    fn of(is_get: bool, target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
        let is_last = |names: &[&str]| names.iter().any(|name| last.eq_ignore_ascii_case(name));
        let polled = is_last(&POLLS)
            || AWAITED.iter().any(|ending| path.ends_with(ending))
            || !is_get && is_last(&["wait"]) && path.contains("/containers/");
        let variables = Variables::of(query);
        let is = |value: Option<&str>, values: &[&str]| value.is_some_and(|value| values.contains(&value));
        let is_on = |value| is(value, &["true", "1"]);
        let stream = is_get
            && (is_on(variables.watch)
                || is_on(variables.follow) && is_last(&["log", "logs"])
                || is(variables.feed, &["continuous", "eventsource"]));
        let blocks = variables.index.is_some_and(|index| !matches!(index, "" | "0")) || variables.hash.is_some();
        let polls = polled
            || is_get
                && (blocks && (variables.wait.is_some() || is_of_consul(path)) || variables.wait.is_some_and(is_time))
            || is_get && is_on(variables.wait) && path.contains("/keys/")
            || is(variables.feed, &["longpoll"])
            || is_get
                && is(variables.transport, &["polling", "longPolling"])
                && (variables.sid.is_some() || variables.id.is_some())
            || variables.timeout.is_some() && path.contains("/_matrix/") && is_last(&["sync"])
            || variables.wait_time_seconds.is_some();
        Self { event: polls || stream, stream }
    }
}

/// The values of those variables of a query that tell: of a name that comes several times, the first.
#[derive(Default)]
struct Variables<'a> {
    watch: Option<&'a str>,
    follow: Option<&'a str>,
    feed: Option<&'a str>,
    index: Option<&'a str>,
    hash: Option<&'a str>,
    wait: Option<&'a str>,
    transport: Option<&'a str>,
    sid: Option<&'a str>,
    id: Option<&'a str>,
    timeout: Option<&'a str>,
    wait_time_seconds: Option<&'a str>,
}

impl<'a> Variables<'a> {
    fn of(query: &'a str) -> Self {
        let mut variables = Self::default();
        for variable in query.split('&') {
            let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
            let slot = match name {
                "watch" => &mut variables.watch,
                "follow" => &mut variables.follow,
                "feed" => &mut variables.feed,
                "index" => &mut variables.index,
                "hash" => &mut variables.hash,
                "wait" => &mut variables.wait,
                "transport" => &mut variables.transport,
                "sid" => &mut variables.sid,
                "id" => &mut variables.id,
                "timeout" => &mut variables.timeout,
                "WaitTimeSeconds" => &mut variables.wait_time_seconds,
                _ => continue,
            };
            slot.get_or_insert(value);
        }
        variables
    }
}

fn is_of_consul(path: &str) -> bool {
    let family = path.strip_prefix("/v1/").and_then(|rest| rest.split('/').next());
    family.is_some_and(|family| CONSUL.contains(&family))
}

/// Is this a time with its unit, as `30s` and `5m` are?
fn is_time(value: &str) -> bool {
    let unit = value.trim_start_matches(|letter: char| letter.is_ascii_digit());
    unit.len() < value.len() && matches!(unit, "s" | "m" | "ms")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_say_what_is_waited_for() {
        let asks = |target| {
            let Asks { event, stream } = Asks::of(true, target);
            (event, stream)
        };
        for target in [
            "/v1/health/service/web?index=100&wait=30s&passing=1",
            "/v1/kv/leader?index=7",
            "/v1/allocations?index=7&wait=60000ms",
            "/v2/keys/job?wait=true&waitIndex=7",
            "/bot1:secret/getUpdates?timeout=50",
            "/_matrix/client/v3/sync?since=s1&timeout=30000",
            "/socket.io/?EIO=4&transport=polling&t=x&sid=a",
            "/chat/poll?since=3",
            "/db/_changes?feed=longpoll",
            "/2018-06-01/runtime/invocation/next",
        ] {
            assert_eq!(asks(target), (true, false), "{target}");
        }
        for target in ["/v1.45/containers/1f/wait?condition=removed", "/api/v4/jobs/request"] {
            assert!(Asks::of(false, target).event, "{target}");
        }
        assert!(!asks("/v1.45/containers/1f/wait").0 && !Asks::of(false, "/table/7/wait").event);
        for target in ["/api/v1/pods?watch=true", "/api/v1/pods/a/log?follow=true", "/db/_changes?feed=continuous"] {
            assert_eq!(asks(target), (true, true), "{target}");
        }
        for target in [
            "/v1/items?index=100",
            "/v1/kv/leader?index=0",
            "/v1/kv/leader",
            "/search?timeout=30s",
            "/api/v1/pods?watch=false",
            "/watch?v=true",
            "/slow?wait=3",
            "/polls/3",
        ] {
            assert_eq!(asks(target), (false, false), "{target}");
        }
        assert!(!Asks::of(false, "/api/v1/pods?watch=true").event);
    }

    #[test]
    fn methods_of_grpc_say_what_is_waited_for() {
        let calls = |method: &str| {
            let Asks { event, stream } = Asks::called(&format!("/shop.v1.Service/{method}"));
            (event, stream)
        };
        for method in ["Watch", "WatchOrders", "SubscribeAll", "StreamingPull", "Listen"] {
            assert_eq!(calls(method), (true, true), "{method}");
        }
        assert_eq!(calls("PollActivityTaskQueue"), (true, false));
        for method in ["PollStatus", "Listeners", "ListListeners", "GetOrder", "Rewatch"] {
            assert_eq!(calls(method), (false, false), "{method}");
        }
    }

    #[test]
    fn fields_say_that_it_comes_when_something_happens() {
        let streams = ["text/event-stream", "Text/Event-Stream;charset=utf-8", "multipart/x-mixed-replace; boundary=a"];
        assert!(streams.iter().all(|stream| is_stream(stream.as_bytes())));
        assert!(is_stream(b"application/vnd.kubernetes.protobuf;stream=watch"));
        assert!(is_awaiting(b"AmazonSQS.ReceiveMessage") && !is_awaiting(b"AmazonSQS.SendMessage"));
        let others = ["text/event-streams", "text/plain", "", "multipart/form-data"];
        assert!(!others.iter().any(|other| is_stream(other.as_bytes())));
    }
}
