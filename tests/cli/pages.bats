# Man pages and completions, which the build generates from the option tables.
load helpers

setup() {
    bide_setup
    pages=$BIDE_BUILD/pages
}
teardown() { bide_teardown; }

# ---- man pages ----

@test "there is a man page for bide, for each subcommand and for bide.conf" {
    for page in bide.1 bide-run.1 bide-fetch.1 bide-wait.1 bide-budget.1 bide-top.1 bide-metrics.1 bide-explain.1 bide-sim.1 bide-demo.1 bide-chaos.1 bide.conf.5; do
        [ -s "$pages/$page" ]
    done
}

@test "mandoc reports no warning" {
    # scdoc emits a paragraph macro beside every heading: the warning that it is skipped is expected.
    for page in "$pages"/*.[15]; do
        mandoc -Tlint -W warning "$page" | grep -v 'skipping paragraph macro' >> complaints || true
    done
    cat complaints
    [ ! -s complaints ]
}

@test "no page is wider than 80 columns, except for examples" {
    for page in "$pages"/*.[15]; do
        mandoc -Tascii -O width=78 "$page" | col -bx | sed '/^EXAMPLES/,/^[A-Z]/d' | awk 'length > 80' >> wide
    done
    cat wide
    [ ! -s wide ]
}

@test "a page has every option of --help" {
    for name in run fetch wait budget top metrics explain sim demo chaos; do
        mandoc -Tascii "$pages/bide-$name.1" | col -b > page
        bide $name --help | grep -oE '^ +(-[a-zA-Z], )?--[a-z0-9.-]+' | grep -oE -- '--[a-z0-9.-]+' > options
        [ "$(wc -l < options)" -gt 3 ]
        while read -r option; do
            grep -qE -- "^ +(-[a-zA-Z], )?$option( |\$)" page || { echo "bide-$name.1 lacks $option" && false; }
        done < options
    done
}

@test "bide.conf(5) has every key" {
    mandoc -Tascii "$pages/bide.conf.5" | col -b > page
    bide help policy-file | sed -n '/^Keys:/,/^Lists/p' | grep -oE '^  [a-z_.]+' | tr -d ' ' > keys
    [ "$(wc -l < keys)" -gt 40 ]
    while read -r key; do
        grep -qx "       $key" page || { echo "no $key" && false; }
    done < keys
}

# ---- bash ----

# Prints the completions of bash for a line, which is separated into words as bash does it: at blanks, = and :.
bash_offers() {
    bash --norc -c '
        . /usr/share/bash-completion/bash_completion
        . "$0"
        mapfile -t COMP_WORDS < <(grep -oE "[^ =:]+|[=:]+" <<< "$1")
        [[ $1 != *" " ]] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE=$1 COMP_POINT=${#1}
        _bide
        printf "%s\n" "${COMPREPLY[@]}"' "$pages/bide.bash" "$1"
}

@test "the completions are valid scripts of their shells" {
    bash -n "$pages/bide.bash"
    zsh -n "$pages/_bide"
    fish -n "$pages/bide.fish"
}

@test "bash completes subcommands, options, values and policies" {
    [ "$(bash_offers 'bide ru')" = run ]
    [ "$(bash_offers 'bide run --at' | sort | tr '\n' ' ')" = "--attempt-timeout= --attempts= " ]
    [ "$(bash_offers 'bide run --jitter eq')" = equal ]
    [ "$(bash_offers 'bide run --jitter=eq')" = equal ]
    [ "$(bash_offers 'bide help exi')" = exit-codes ]
    printf '[my-own]\n' > bide.conf
    [ "$(bash_offers 'bide run --policy my')" = my-own ]
    touch my-script
    [ "$(bash_offers 'bide chaos my-s')" = my-script ]
    [ "$(bash_offers 'bide run --config my-s')" = my-script ]
}

@test "bash completes the command after bide run as usual" {
    touch my-file
    [ "$(bash_offers 'bide run --attempts 3 cat my-f')" = my-file ]
    [ "$(bash_offers 'bide run -- cat my-f')" = my-file ]
    [[ $(bash_offers 'bide run -- cat --at') != *attempts* ]]
    [ "$(bash_offers 'bide run --set attempts=3 --fleet redis://x cat my-f')" = my-file ]
}

@test "bash completes keys of --set, things of bide wait, and its command" {
    [ "$(bash_offers 'bide run --set budget.cap')" = budget.capacity= ]
    [ "$(bash_offers 'bide explain --set=permanent_e')" = permanent_exit= ]
    [ "$(bash_offers 'bide sim --set policy.budget.cap')" = policy.budget.capacity= ]
    [ "$(bash_offers 'bide sim --set clients.peak_r')" = clients.peak_rate= ]
    [ "$(bash_offers 'bide run --like pg')" = pg_dump ]
    [ "$(bash_offers 'bide wait tcp:db:5432 tc')" = tcp: ]
    [ "$(bash_offers 'bide wait http:')" = // ]
    touch my-file
    [ "$(bash_offers 'bide wait tcp:db:5432 -- cat my-f')" = my-file ]
    [ -z "$(bash_offers 'bide wait -- cat --fo')" ]
}

@test "bash completes subcommands of bide budget once, and the keys of set" {
    [ "$(bash_offers 'bide budget wat')" = watch ]
    [ -z "$(bash_offers 'bide budget show wat')" ]
    [ "$(bash_offers 'bide budget set payments budget.cap')" = budget.capacity= ]
}

@test "bash completes scenarios, words and files of bide sim" {
    touch metallic.ini
    [ "$(bash_offers 'bide sim meta' | sort | tr '\n' ' ')" = "metallic.ini metastable metastable_trigger " ]
    [ "$(bash_offers 'bide sim sho')" = show ]
    [ "$(bash_offers 'bide sim show mm1')" = mm1_check ]
    [ -z "$(bash_offers 'bide sim show metal')" ]
    [ "$(bash_offers 'bide sim --seed 3 assert metal')" = metallic.ini ]
    [ -z "$(bash_offers 'bide sim list ')" ]
}

@test "bash completes names of files that contain blanks" {
    touch 'two words'
    [ "$(bash_offers 'bide chaos two')" = 'two words' ]
}

# ---- fish ----

fish_offers() {
    fish --no-config -c "source $pages/bide.fish; complete -C '$1'" | cut -f 1
}

@test "fish completes subcommands, options, values and policies" {
    [ "$(fish_offers 'bide ru')" = run ]
    [ "$(fish_offers 'bide run --at' | sort | tr '\n' ' ')" = "--attempt-timeout --attempts " ]
    [ "$(fish_offers 'bide run --jitter eq')" = equal ]
    [ "$(fish_offers 'bide help exi')" = exit-codes ]
    printf '[my-own]\n' > bide.conf
    [ "$(fish_offers 'bide run --policy my')" = my-own ]
    touch my-file
    [ "$(fish_offers 'bide run --attempts 3 cat my-f')" = my-file ]
    [ -z "$(fish_offers 'bide run cat --att')" ]
    [ "$(fish_offers 'bide sim mm1')" = mm1_check ]
}

@test "fish completes keys of --set, things of bide wait, and the operands of sim and budget" {
    [ "$(fish_offers 'bide run --set budget.cap')" = budget.capacity= ]
    [ "$(fish_offers 'bide sim --set policy.budget.cap')" = policy.budget.capacity= ]
    [ "$(fish_offers 'bide run --like pg')" = pg_dump ]
    [ "$(fish_offers 'bide wait tcp:db:5432 tc')" = tcp: ]
    touch my-file
    [ "$(fish_offers 'bide run --attempts 3 -- cat my-f')" = my-file ]
    [ "$(fish_offers 'bide wait tcp:db:5432 -- cat my-f')" = my-file ]
    [ -z "$(fish_offers 'bide wait -- cat --fo')" ]
    [ "$(fish_offers 'bide sim --seed 3 show mm1')" = mm1_check ]
    [ -z "$(fish_offers 'bide sim list ')" ]
    [ "$(fish_offers 'bide budget set payments budget.cap')" = budget.capacity= ]
    [ -z "$(fish_offers 'bide budget show wat')" ]
}

@test "fish describes an option, not each of its values" {
    fish --no-config -c "source $pages/bide.fish; complete -C 'bide run --jit'" | grep -q $'^--jitter\thow a wait'
    fish --no-config -c "source $pages/bide.fish; complete -C 'bide run --jitter '" > values
    grep -qx equal values
    ! grep -q 'how a wait' values
    fish --no-config -c "source $pages/bide.fish; complete -C 'bide run --preset '" > values
    grep -qx payment values
}

# ---- zsh ----

# Prints the line after completion by zsh in a pseudo-terminal: the tab key is bound to a function that writes it to a file.
zsh_makes() {
    rm -f line
    cat > setup.zsh << END
PS1= fpath=($pages \$fpath)
autoload -Uz compinit && compinit -D -u
note() { zle complete-word; print -r -- "\$BUFFER" > line.new; mv line.new line; exit }
zle -N note
bindkey '^I' note
END
    zsh -f -c '
        zmodload zsh/zpty
        zpty z "TERM=dumb zsh -f -i"
        zpty -w z "source ./setup.zsh; print SET\"\"UP"
        zpty -r -m z said "*SETUP*"
        zpty -w -n z "$1"$'"'\\t'"'
        while [[ ! -e line ]]; do zpty -r z said || break; done
        zpty -d z' zsh "$1"
    sed 's/ *$//' line
}

@test "zsh completes subcommands, options and values" {
    [ "$(zsh_makes 'bide ru')" = "bide run" ]
    [ "$(zsh_makes 'bide run --jit')" = "bide run --jitter=" ]
    [ "$(zsh_makes 'bide run --jitter=eq')" = "bide run --jitter=equal" ]
    [ "$(zsh_makes 'bide help exi')" = "bide help exit-codes" ]
    [ "$(zsh_makes 'bide sim mm1')" = "bide sim mm1_check" ]
    printf '[my-own]\n' > bide.conf
    [ "$(zsh_makes 'bide run --policy my')" = "bide run --policy my-own" ]
    touch my-file
    [ "$(zsh_makes 'bide run --attempts 3 cat my-f')" = "bide run --attempts 3 cat my-file" ]
}

@test "zsh completes the name of the command after bide run" {
    printf '#!/bin/sh\n' > only-one-is-called-so
    chmod +x only-one-is-called-so
    PATH=$PWD:$PATH
    [ "$(zsh_makes 'bide run only-one')" = "bide run only-one-is-called-so" ]
    [ "$(zsh_makes 'bide run -- only-one')" = "bide run -- only-one-is-called-so" ]
    [ "$(zsh_makes 'bide run --attempts 3 only-one')" = "bide run --attempts 3 only-one-is-called-so" ]
}

@test "zsh completes the arguments of the command after --" {
    touch my-file
    [ "$(zsh_makes 'bide run --attempts 3 -- cat my-f')" = "bide run --attempts 3 -- cat my-file" ]
    [ "$(zsh_makes 'bide run cat -- my-f')" = "bide run cat -- my-file" ]
    [ "$(zsh_makes 'bide wait tcp:db:5432 -- cat my-f')" = "bide wait tcp:db:5432 -- cat my-file" ]
    echo '#compdef nosuch
_arguments "--only-one-option"' > _nosuch
    pages="$pages $PWD"
    [ "$(zsh_makes 'bide run -- nosuch --only')" = "bide run -- nosuch --only-one-option" ]
}

@test "zsh completes keys of --set, things of bide wait, and the operands of sim and budget" {
    [ "$(zsh_makes 'bide run --set budget.cap')" = "bide run --set budget.capacity=" ]
    [ "$(zsh_makes 'bide sim --set policy.budget.cap')" = "bide sim --set policy.budget.capacity=" ]
    [ "$(zsh_makes 'bide run --like pg')" = "bide run --like pg_dump" ]
    [ "$(zsh_makes 'bide wait tcp:db:5432 tc')" = "bide wait tcp:db:5432 tcp:" ]
    [ "$(zsh_makes 'bide sim --seed 3 show mm1')" = "bide sim --seed 3 show mm1_check" ]
    [ "$(zsh_makes 'bide sim show lis')" = "bide sim show lis" ]
    [ "$(zsh_makes 'bide budget set payments budget.cap')" = "bide budget set payments budget.capacity=" ]
}
