; The installer for Windows, made by build.ps1. NEVER RUN by us yet.
[Setup]
AppId={{6D0F2C5B-58C0-4A27-8C0E-0D6A3E1B7A52}
AppName=SNDR Control Center
AppVersion={#Version}
AppPublisher=SNDR maintainers
DefaultDirName={autopf}\SNDR Control Center
DefaultGroupName=SNDR Control Center
; For one user, without an administrator, unless that is asked for.
PrivilegesRequired=lowest
PrivilegesRequiredOverridesAllowed=dialog
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
ChangesEnvironment=yes
Compression=lzma2
SolidCompression=yes
LicenseFile=..\..\LICENSE
SetupIconFile=sndr.ico
UninstallDisplayIcon={app}\sndr-gui.exe
OutputDir=..\..\dist
OutputBaseFilename=sndr-control-center-{#Version}-windows-x86_64
SourceDir=.

[Tasks]
Name: path; Description: "Put sndr on the path"
Name: desktopicon; Description: "{cm:CreateDesktopIcon}"; Flags: unchecked

[Files]
Source: "..\..\build\frozen\sndr-control-center\*"; DestDir: "{app}"; Flags: recursesubdirs ignoreversion

[Icons]
Name: "{group}\SNDR Control Center"; Filename: "{app}\sndr-gui.exe"
Name: "{autodesktop}\SNDR Control Center"; Filename: "{app}\sndr-gui.exe"; Tasks: desktopicon

[Registry]
; sndr:// links open the window, which asks before any effect.
Root: HKA; Subkey: "Software\Classes\sndr"; ValueType: string; ValueName: ""; ValueData: "URL:SNDR Control Center"; Flags: uninsdeletekey
Root: HKA; Subkey: "Software\Classes\sndr"; ValueType: string; ValueName: "URL Protocol"; ValueData: ""
Root: HKA; Subkey: "Software\Classes\sndr\shell\open\command"; ValueType: string; ValueName: ""; \
    ValueData: """{app}\sndr-gui.exe"" ""%1"""
Root: HKA; Subkey: "{code:EnvironmentKey}"; ValueType: expandsz; ValueName: "Path"; \
    ValueData: "{olddata};{app}"; Tasks: path; Check: NotOnPath

[Run]
Filename: "{app}\sndr-gui.exe"; Description: "{cm:LaunchProgram,SNDR Control Center}"; Flags: postinstall nowait skipifsilent

[Code]
function EnvironmentKey(Param: String): String;
begin
  if IsAdminInstallMode then
    Result := 'SYSTEM\CurrentControlSet\Control\Session Manager\Environment'
  else
    Result := 'Environment';
end;

function PathNow(): String;
begin
  if not RegQueryStringValue(HKA, EnvironmentKey(''), 'Path', Result) then
    Result := '';
end;

function NotOnPath(): Boolean;
begin
  Result := Pos(';' + Uppercase(ExpandConstant('{app}')) + ';', ';' + Uppercase(PathNow()) + ';') = 0;
end;

procedure CurUninstallStepChanged(Step: TUninstallStep);
var
  Words: String;
begin
  if Step <> usPostUninstall then
    exit;
  Words := ';' + PathNow() + ';';
  if StringChangeEx(Words, ';' + ExpandConstant('{app}') + ';', ';', True) > 0 then
    RegWriteExpandStringValue(HKA, EnvironmentKey(''), 'Path', Copy(Words, 2, Length(Words) - 2));
end;
