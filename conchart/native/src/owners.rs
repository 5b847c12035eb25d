//! Whose packet it is: process, container and pod, where whoever captured it wrote them beside it.
//!
//! In: the comments of a packet. Out: an [`Owner`] for its sender, for its receiver, or for both.
//!
//! Two programs write such comments. `ptcpdump` writes lines like `PID: 7`, `Cmd: /usr/bin/curl`, `ContainerName: …`,
//! `PodName: …` about *the socket of its own machine*; the packet's flags say which way it passed. A packet that goes out
//! is its sender's, one that comes in its receiver's. `netobserv` writes a comment that begins with `Source`, one that
//! begins with `Destination`, each with lines like `Src Name: checkout-7d`.
//!
//! Command lines are not kept: passwords stand in them.

use crate::capture::{Comments, Direction};
use crate::stream::{BySide, Side};

/// Characters that are kept of a name. Paths and names of Kubernetes have at most 253 or so.
const LONGEST: usize = 256;

/// What is known of who owns a socket.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Owner {
    pub pid: Option<i32>,
    /// The program, as it was told: a path or a name.
    pub process: Option<Box<str>>,
    pub container: Option<Box<str>>,
    pub container_id: Option<Box<str>>,
    /// `namespace/name`, or the name alone.
    pub pod: Option<Box<str>>,
}

impl Owner {
    fn is_identified(&self) -> bool {
        *self != Self::default()
    }

    /// Takes what is not known yet. Of a process nothing is taken from another one.
    fn learn(&mut self, other: &Self) {
        if self.pid.is_none() && self.process.is_none() {
            self.pid = other.pid;
            self.process.clone_from(&other.process);
        }
        for (own, new) in [
            (&mut self.container, &other.container),
            (&mut self.container_id, &other.container_id),
            (&mut self.pod, &other.pod),
        ] {
            if own.is_none() {
                own.clone_from(new);
            }
        }
    }
}

/// What the comments of one packet tell.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PacketOwners {
    sender: Option<Owner>,
    receiver: Option<Owner>,
}

impl PacketOwners {
    /// Reads comments; `None` where they tell of no owner.
    #[must_use]
    pub fn of(comments: Comments<'_>) -> Option<Self> {
        let (mut owners, mut local) = (Self::default(), Lines::default());
        for text in comments.texts() {
            match text.split(|byte| *byte == b'\n').next().map(<[u8]>::trim_ascii) {
                Some(b"Source") => owners.sender = Lines::default().resource(text),
                Some(b"Destination") => owners.receiver = Lines::default().resource(text),
                _ => local.socket(text),
            }
        }
        if let Some(owner) = local.owner() {
            match comments.direction() {
                Some(Direction::Outbound) => owners.sender = Some(owner),
                Some(Direction::Inbound) => owners.receiver = Some(owner),
                // It could be either end's.
                None => {}
            }
        }
        (owners != Self::default()).then_some(owners)
    }
}

/// Values of the lines of comments; of a key the first one counts.
#[derive(Default)]
struct Lines {
    owner: Owner,
    namespace: Option<Box<str>>,
    is_no_pod: bool,
}

impl Lines {
    /// Comments of `ptcpdump`.
    fn socket(&mut self, text: &[u8]) {
        for (key, value) in lines(text) {
            let owner = &mut self.owner;
            match key {
                b"PID" => owner.pid = owner.pid.or_else(|| value.parse().ok().filter(|pid| *pid > 0)),
                b"Cmd" => first(&mut owner.process, &value),
                b"ContainerName" => first(&mut owner.container, &value),
                b"ContainerId" => first(&mut owner.container_id, &value),
                b"PodName" => first(&mut owner.pod, &value),
                b"PodNamespace" => first(&mut self.namespace, &value),
                _ => {}
            }
        }
    }

    /// A comment of `netobserv`, about one end.
    fn resource(mut self, text: &[u8]) -> Option<Owner> {
        const ENDS: [&[u8]; 6] = [b"Src ", b"Dst ", b"SrcK8S_", b"DstK8S_", b"Source ", b"Destination "];
        for (key, value) in lines(text) {
            match ENDS.iter().find_map(|end| key.strip_prefix(*end)).unwrap_or(key) {
                b"Name" => first(&mut self.owner.pod, &value),
                b"Namespace" => first(&mut self.namespace, &value),
                b"Kind" | b"Type" => self.is_no_pod |= value != "Pod",
                _ => {}
            }
        }
        if self.is_no_pod {
            return None; // a service or a node is not who owns the socket
        }
        self.owner()
    }

    fn owner(self) -> Option<Owner> {
        let Self { mut owner, namespace, .. } = self;
        if let (Some(pod), Some(namespace)) = (&owner.pod, &namespace) {
            owner.pod = Some(format!("{namespace}/{pod}").into());
        }
        owner.is_identified().then_some(owner)
    }
}

fn first(slot: &mut Option<Box<str>>, value: &str) {
    if slot.is_none() && !value.is_empty() && value != "n/a" {
        *slot = Some(value.chars().take(LONGEST).collect::<String>().into());
    }
}

/// Key and value of each line that has both.
fn lines(text: &[u8]) -> impl Iterator<Item = (&[u8], String)> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (key, value) = (line.get(..colon)?, line.get(colon + 1..)?);
        let value = value.get(..value.len().min(4 * LONGEST))?;
        Some((key.trim_ascii(), String::from_utf8_lossy(value).trim().to_owned()))
    })
}

/// Who owns the two ends of a connection, as far as its packets told.
#[derive(Clone, Debug, Default)]
pub struct Owners(Option<Box<BySide<Owner>>>);

impl Owners {
    /// Takes what a packet from this side told.
    pub fn learn(&mut self, from: Side, owners: &PacketOwners) {
        let ends = [(from, &owners.sender), (from.peer(), &owners.receiver)];
        for (side, owner) in ends.into_iter().filter_map(|(side, owner)| Some((side, owner.as_ref()?))) {
            self.0.get_or_insert_default()[side].learn(owner);
        }
    }

    #[must_use]
    pub fn of(&self, side: Side) -> Option<&Owner> {
        self.0.as_ref().map(|owners| &owners[side])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The options of a packet block: comments, then flags.
    fn packet_owners(comments: &[&str], flags: Option<u32>) -> Option<PacketOwners> {
        let mut options = Vec::new();
        let mut option = |code: u16, value: &[u8]| {
            options.extend(code.to_le_bytes());
            options.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_le_bytes());
            options.extend(value);
            options.resize(options.len().next_multiple_of(4), 0);
        };
        comments.iter().for_each(|comment| option(1, comment.as_bytes()));
        if let Some(flags) = flags {
            option(2, &flags.to_le_bytes());
        }
        PacketOwners::of(Comments::of(&options))
    }

    const CURL: [&str; 3] = [
        "PID: 4123\nCmd: /usr/bin/curl\nArgs: curl -u me:secret http://shop",
        "ContainerName: box\nContainerId: 1a2b3c\nContainerImage: shop:1\nContainerLabels: {}",
        "PodName: checkout-7d\nPodNamespace: shop\nPodUID: 9\nPodLabels: {}\nPodAnnotations: {}",
    ];

    fn curl() -> Owner {
        Owner {
            pid: Some(4123),
            process: Some("/usr/bin/curl".into()),
            container: Some("box".into()),
            container_id: Some("1a2b3c".into()),
            pod: Some("shop/checkout-7d".into()),
        }
    }

    #[test]
    fn a_packet_that_goes_out_is_its_senders_and_one_that_comes_in_its_receivers() {
        assert_eq!(packet_owners(&CURL, Some(2)), Some(PacketOwners { sender: Some(curl()), receiver: None }));
        assert_eq!(packet_owners(&CURL, Some(1)), Some(PacketOwners { sender: None, receiver: Some(curl()) }));
    }

    #[test]
    fn without_a_direction_nobody_is_named() {
        assert_eq!(packet_owners(&CURL, None), None);
        assert_eq!(packet_owners(&CURL, Some(0)), None);
    }

    #[test]
    fn netobserv_names_both_ends() {
        let source = "Source\nSrc Addr: 10.0.0.1\nSrc Kind: Pod\nSrc Name: front\nSrc Namespace: shop\n";
        let service = "Destination\nDst Kind: Service\nDst Name: back\nDst Namespace: shop\n";
        let sender = Owner { pod: Some("shop/front".into()), ..Owner::default() };
        let expected = PacketOwners { sender: Some(sender.clone()), receiver: None };
        assert_eq!(packet_owners(&[source, service, "Common\nProto: TCP\n"], None), Some(expected));
        let raw = "Destination\nDstK8S_Name: front\nDstK8S_Namespace: shop\nDstK8S_Type: Pod\n";
        assert_eq!(packet_owners(&[raw], None), Some(PacketOwners { sender: None, receiver: Some(sender) }));
    }

    #[test]
    fn other_comments_tell_nothing() {
        for text in ["", "a note", "PID: none\nCmd:", "conchart: request GET /\n", "Source\n", "Source\nSrc Name: n/a"]
        {
            assert_eq!(packet_owners(&[text], Some(2)), None, "{text}");
        }
    }

    #[test]
    fn what_a_program_calls_itself_is_bounded_and_does_not_name_it_again() {
        let text = format!("PID: 7\nCmd: {}\nArgs: x\nPID: 8\nCmd: other", "\u{e9}".repeat(9_999));
        let owner = packet_owners(&[&text], Some(2)).and_then(|owners| owners.sender).unwrap_or_default();
        assert_eq!(owner.pid, Some(7));
        assert_eq!(owner.process.map(|process| process.chars().count()), Some(LONGEST));
    }

    #[test]
    fn a_connection_keeps_the_process_that_it_was_told_first() {
        let mut owners = Owners::default();
        let other = "PID: 9\nCmd: other\nArgs: -";
        for (comment, flags) in [(CURL[0], 2), (other, 2), (CURL[2], 2), (other, 1)] {
            if let Some(packet) = packet_owners(&[comment], Some(flags)) {
                owners.learn(Side::Client, &packet);
            }
        }
        let expected = Owner { container: None, container_id: None, ..curl() };
        assert_eq!(owners.of(Side::Client), Some(&expected));
        assert_eq!(owners.of(Side::Server).and_then(|owner| owner.pid), Some(9));
    }
}
