use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::wire::next_frame;

fn orders() -> impl Strategy<Value = Order> {
    let texts = || vec(".{0,12}", 0..4);
    let start = (any::<(u32, bool, bool, u64, u64)>(), texts(), texts(), ".{0,40}", ".{0,20}");
    prop_oneof![
        start.prop_map(
            |((id, stdin, background, timeout_ms, grace_ms), argv, env, script, cwd)| {
                let start = Start {
                    id,
                    hidden: argv.clone(),
                    argv,
                    script,
                    cwd,
                    env,
                    stdin,
                    background,
                    timeout_ms,
                    grace_ms,
                };
                Order::Start(start)
            }
        ),
        (".{0,20}", ".{0,20}", texts(), any::<[u64; 5]>()).prop_map(
            |(workspace, home, hidden, [a, b, c, d, e])| Order::Setup(Setup {
                isolation: Isolation::Landlock,
                network: NetworkMode::Nothing,
                uid: 1,
                gid: 2,
                binds: vec![Bind {
                    source: home.clone(),
                    target: workspace.clone(),
                    access: Access::Writable
                }],
                files: vec![NewFile { path: home.clone(), content: workspace.clone() }],
                workspace_at: workspace.clone(),
                workspace_alias: home.clone(),
                workspace,
                home,
                hidden,
                memory_bytes: a,
                processes: b,
                open_files: c,
                file_bytes: d,
                scratch_bytes: e,
                control_group: "task".to_owned(),
                dumpable: true,
            })
        ),
        any::<(u32, u64)>().prop_map(|(id, grace_ms)| Order::Kill { id, grace_ms }),
        any::<(u32, Vec<u8>)>().prop_map(|(id, bytes)| Order::Input { id, bytes }),
        any::<(u32, i64)>().prop_map(|(id, credit)| Order::OutputCredit { id, credit }),
        any::<(u32, Vec<u8>)>().prop_map(|(connection, bytes)| Order::Reply { connection, bytes }),
        any::<(u32, i64)>()
            .prop_map(|(connection, credit)| Order::ConnectionCredit { connection, credit }),
        any::<u32>().prop_map(|connection| Order::Hangup { connection }),
        any::<u64>().prop_map(|milliseconds| Order::Lease { milliseconds }),
    ]
}

fn reports() -> impl Strategy<Value = Report> {
    prop_oneof![
        (any::<(u16, u32, bool, bool, bool)>(), ".{0,20}").prop_map(|(ready, shell)| {
            let (proxy_port, landlock, memory_bounded, processes_bounded, filtered) = ready;
            Report::Ready(Ready {
                proxy_port,
                landlock,
                memory_bounded,
                processes_bounded,
                filtered,
                shell,
                runs_as_root: true,
            })
        }),
        (".{0,20}", any::<i32>()).prop_map(|(stage, errno)| Report::Failed { stage, errno }),
        any::<u32>().prop_map(|id| Report::Started { id }),
        (any::<(u32, i32)>(), ".{0,20}").prop_map(|((id, errno), stage)| Report::Refused {
            id,
            stage,
            errno
        }),
        (any::<(u32, Vec<u8>)>(), 1u8..=2).prop_map(|((id, bytes), stream)| Report::Output {
            id,
            stream,
            bytes
        }),
        any::<(u32, i64)>().prop_map(|(id, credit)| Report::InputCredit { id, credit }),
        (any::<(u32, i32)>(), ".{0,20}").prop_map(|((id, value), cwd)| {
            Report::Ended { id, cause: Cause::TimedOut, value, cwd }
        }),
        any::<u32>().prop_map(|connection| Report::Connected { connection }),
        any::<(u32, Vec<u8>)>()
            .prop_map(|(connection, bytes)| Report::Request { connection, bytes }),
        any::<(u32, i64)>()
            .prop_map(|(connection, credit)| Report::ConnectionCredit { connection, credit }),
        any::<u32>().prop_map(|connection| Report::Closed { connection }),
    ]
}

proptest! {
    #[test]
    fn an_order_written_is_the_order_read(order in orders()) {
        let mut bytes = Vec::new();
        order.write(&mut bytes);
        let (frame, length) = next_frame(&bytes).unwrap().unwrap();
        prop_assert_eq!(length, bytes.len());
        prop_assert_eq!(Order::read(frame).unwrap(), order);
    }

    #[test]
    fn a_report_written_is_the_report_read(report in reports()) {
        let mut bytes = Vec::new();
        report.write(&mut bytes);
        let (frame, length) = next_frame(&bytes).unwrap().unwrap();
        prop_assert_eq!(length, bytes.len());
        prop_assert_eq!(Report::read(frame).unwrap(), report);
    }

    #[test]
    fn a_frame_cut_short_is_waited_for(report in reports(), at in any::<prop::sample::Index>()) {
        let mut bytes = Vec::new();
        report.write(&mut bytes);
        prop_assert!(next_frame(&bytes[..at.index(bytes.len())]).unwrap().is_none());
    }

    #[test]
    fn any_bytes_are_read_or_refused_without_a_panic(bytes in vec(any::<u8>(), 0..200), kind in 0u8..20) {
        let _ = next_frame(&bytes);
        let _ = Order::read((kind, &bytes));
        let _ = Report::read((kind, &bytes));
    }
}
