# weir: completion for bash. The words come from the program itself (weir help --words).
_weir() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        words=$("${COMP_WORDS[0]}" help --words 2>/dev/null | cut -f 1)
    elif [ "$COMP_CWORD" -gt 2 ] && [[ $word != -* && $before == -* ]]; then
        words='' # the value of a flag: files
    else
        words=$("${COMP_WORDS[0]}" help "${COMP_WORDS[1]}" --words 2>/dev/null | cut -f 1)
        [ "$COMP_CWORD" -gt 2 ] && words=$(grep '^-' <<<"$words")
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o bashdefault -o default -F _weir weir
