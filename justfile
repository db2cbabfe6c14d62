# Short names for what cargo already does; `just` alone lists them.

[private]
default:
    @just --list

# the main job
run scenario="scenarios/host-failure.yaml":
    cargo run --release -- run {{scenario}}

# everything that must hold
test *options:
    cargo xtask test {{options}}

# one bench beside its peer: `just bench lab`
bench name:
    cargo xtask bench {{name}}
