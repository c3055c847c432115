# weir: completion for fish. The words come from the program itself (weir help --words).
function __weir_words
    set -l said (commandline -opc)
    if test (count $said) -eq 1
        $said[1] help --words 2>/dev/null
    else if test (count $said) -eq 2
        $said[1] help $said[2] --words 2>/dev/null
    else
        $said[1] help $said[2] --words 2>/dev/null | string match -- '-*'
    end
end
complete -c weir -f -n '__fish_is_first_token' -a '(__weir_words)'
complete -c weir -n 'not __fish_is_first_token' -a '(__weir_words)'
